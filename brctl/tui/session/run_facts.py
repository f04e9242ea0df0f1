"""A run's folder as a screen shows it: the plan, and what the journal says became of each step."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from brctl.engine.runs.run_files import (
    PLAN,
    frozen_playbook,
    load_inputs,
    load_request,
    read_json,
)
from brctl.journal.store import Recording, read_journal
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.playbook import Arguments, Json, Playbook
from brctl.model.units import parse_rfc3339
from brctl.playbook.node_runs import instance_of
from brctl.playbook.plan import nodes_named
from brctl.playbook.run_record import RunRecord, replay
from brctl.playbook.steps import StepState
from brctl.tui.session.facts import GuardFact, NodeRunFact, RunFact, StepFact


def read_run(run_dir: Path, *, alive: bool) -> RunFact:
    """One run.

    Raises:
        BrctlError: A file of the folder is missing or damaged.
        ValueError: The journal says something that cannot be.
    """
    recording = read_journal(run_dir)
    playbook, inputs = frozen_playbook(run_dir), load_inputs(run_dir)
    record = replay(playbook, recording.events)
    asked_at = _text(record.question, "asked_at")
    return RunFact(
        name=run_dir.name,
        events=recording.events,
        alive=alive,
        damage=recording.damage,
        playbook=playbook.name,
        state=record.state(alive=alive),
        by=load_request(run_dir).by,
        verdict=inputs.verdict_id,
        job=str(inputs.job.get("name") or ""),
        nodes=nodes_named(playbook, inputs.inputs),
        steps=_steps(playbook, record, recording, alive=alive),
        node_runs=_node_runs(record),
        guards=_guards(recording, run_dir),
        gate=playbook.approval.gate_before if playbook.approval else "",
        words=_text(record.question, "answer"),
        question=_text(record.question, "why"),
        asked_at=parse_rfc3339(asked_at) if asked_at else None,
        why=record.why,
    )


def _last(events: Sequence[Event], kind: EventType) -> Event | None:
    return next((event for event in reversed(events) if event.type is kind), None)


def _text(fields: Arguments, key: str) -> str:
    value = fields.get(key, "")
    return value if isinstance(value, str) else str(value)


def _steps(
    playbook: Playbook, record: RunRecord, recording: Recording, *, alive: bool
) -> tuple[StepFact, ...]:
    seconds = {
        _text(event.fields, "step"): event.fields.get("seconds")
        for event in recording.events
        if event.type is EventType.STEP_RESULT
    }
    facts = []
    for name, past in record.steps.items():
        step = playbook.step(name)
        # A living process has not lost its step; only a dead one leaves it in doubt.
        state = StepState.RUNNING if alive and past.state is StepState.UNCERTAIN else past.state
        took = seconds.get(name)
        facts.append(
            StepFact(
                name, step.verb, step.safety, state, past.say, past.error,
                took if isinstance(took, int | float) else None, step.undo is not None,
            )
        )  # fmt: skip
    return tuple(facts)


def _node_runs(record: RunRecord) -> tuple[NodeRunFact, ...]:
    return tuple(
        NodeRunFact(
            node, node_run.result, bool(node_run.started_at),
            node_run.failed_step or _at(record, node), node_run.why, node_run.seconds,
        )
        for node, node_run in record.node_runs.items()
        if node
    )  # fmt: skip


def _at(record: RunRecord, node: str) -> str:
    """The step a node is at: the last one that was begun."""
    begun = [s for s in record.step_ids if record.steps[instance_of(s, node)].attempts]
    return begun[-1] if begun else ""


def _guards(recording: Recording, run_dir: Path) -> tuple[GuardFact, ...]:
    checked = _last(recording.events, EventType.GUARDS_CHECKED)
    rows = checked.fields.get("guards") if checked else read_json(run_dir / PLAN).get("guards")
    listed = rows if isinstance(rows, Sequence) and not isinstance(rows, str) else ()
    return tuple(_guard(row) for row in listed if isinstance(row, Mapping))


def _guard(row: Mapping[str, Json]) -> GuardFact:
    texts = {key: str(row.get(key) or "") for key in ("guard", "says", "origin")}
    return GuardFact(texts["guard"], row.get("ok") is True, texts["says"], texts["origin"])
