"""The parts of a run as its screen shows them; pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import Json, Safety
from brctl.model.runs.result import NodeResult
from brctl.playbook.node_runs import instance_of
from brctl.playbook.run import Run
from brctl.playbook.run_record import RunRecord
from brctl.playbook.steps import StepState


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of a run, as planned and as the journal tells it; `id@node` with `for_each`."""

    id: str
    uses: str
    safety: Safety
    state: StepState
    say: str = ""
    error: str = ""
    seconds: float | None = None
    undoable: bool = False


@dataclass(frozen=True, slots=True)
class NodeRunView:
    """What became of one node of a playbook that runs once per node.

    Attributes:
        result: As in the journal; "" while the node is not through.
        at_step: The step it is at, or that failed.
    """

    node: str
    result: NodeResult | None = None
    started: bool = False
    at_step: str = ""
    why: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class GuardView:
    """What one guard said when it was last asked in this run."""

    kind: str
    ok: bool
    says: str
    origin: str


def steps_of(run: Run) -> tuple[StepView, ...]:
    """Every step as its journal tells it."""
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
            StepView(
                name, step.verb, step.safety, state, past.say, past.error,
                took if isinstance(took, int | float) else None, step.undo is not None,
            )
        )  # fmt: skip
    return tuple(facts)


def node_runs_of(record: RunRecord) -> tuple[NodeRunView, ...]:
    """The nodes of `for_each`; empty without it."""
    return tuple(
        NodeRunView(
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


def guards_of(run: Run) -> tuple[GuardView, ...]:
    """What the guards said when they were last asked."""
    return tuple(_guard(row) for row in run.guards)


def _guard(row: Mapping[str, Json]) -> GuardView:
    texts = {key: str(row.get(key) or "") for key in ("guard", "says", "origin")}
    return GuardView(texts["guard"], row.get("ok") is True, texts["says"], texts["origin"])
