"""A run's folder as a screen shows it: the plan, and what the journal says became of each step."""

from collections.abc import Mapping, Sequence

from brctl.engine.runs.run_files import (
    PLAN,
    read_json,
)
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.playbook import Json
from brctl.model.units import parse_rfc3339
from brctl.playbook.node_runs import instance_of
from brctl.playbook.run import Run
from brctl.playbook.run_record import RunRecord
from brctl.playbook.steps import StepState
from brctl.tui.session.facts import GuardFact, NodeRunFact, RunFact, StepFact


def run_fact(run: Run) -> RunFact:
    """One run.

    Raises:
        BrctlError: Its plan is missing or damaged.
    """
    record, approval = run.record, run.playbook.approval
    asked_at = run.asked("asked_at")
    return RunFact(
        name=run.name,
        events=run.events,
        alive=run.alive,
        damage=run.damage,
        playbook=run.playbook.name,
        state=run.state,
        by=run.by,
        verdict=run.verdict_id,
        job=run.job,
        nodes=run.nodes,
        steps=_steps(run),
        node_runs=_node_runs(record),
        guards=_guards(run),
        gate=approval.gate_before if approval else "",
        words=run.asked("answer"),
        question=run.asked("why"),
        asked_at=parse_rfc3339(asked_at) if asked_at else None,
        why=record.why,
    )


def _last(events: Sequence[Event], kind: EventType) -> Event | None:
    return next((event for event in reversed(events) if event.type is kind), None)


def _steps(run: Run) -> tuple[StepFact, ...]:
    seconds = {
        str(event.fields.get("step", "")): event.fields.get("seconds")
        for event in run.events
        if event.type is EventType.STEP_RESULT
    }
    facts = []
    for name, past in run.record.steps.items():
        step = run.playbook.step(name)
        # A living process has not lost its step; only a dead one leaves it in doubt.
        state = StepState.RUNNING if run.alive and past.state is StepState.UNCERTAIN else past.state
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


def _guards(run: Run) -> tuple[GuardFact, ...]:
    checked = _last(run.events, EventType.GUARDS_CHECKED)
    rows = checked.fields.get("guards") if checked else read_json(run.run_dir / PLAN).get("guards")
    listed = rows if isinstance(rows, Sequence) and not isinstance(rows, str) else ()
    return tuple(_guard(row) for row in listed if isinstance(row, Mapping))


def _guard(row: Mapping[str, Json]) -> GuardFact:
    texts = {key: str(row.get(key) or "") for key in ("guard", "says", "origin")}
    return GuardFact(texts["guard"], row.get("ok") is True, texts["says"], texts["origin"])
