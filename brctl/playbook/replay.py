"""What a journal says about a run: the state of every step, told by its events alone.

A resumed run knows nothing else of its past. An intent without a result makes a step UNCERTAIN.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from brctl.model.event import Event, EventType
from brctl.model.playbook import Arguments, Json, Playbook, Safety
from brctl.playbook.steps import StepEvent, StepState, advance

OPEN_STATES = frozenset({StepState.PENDING, StepState.UNCERTAIN, StepState.FAILED})


@dataclass(slots=True)
class StepRecord:
    """One step's past.

    Attributes:
        attempts: How often it was started.
        changed: It reported that it changed something.
        given: Arguments of the latest attempt, as they were sent.
    """

    state: StepState = StepState.PENDING
    attempts: int = 0
    changed: bool = False
    out: Arguments = field(default_factory=dict)
    given: Arguments = field(default_factory=dict)
    say: str = ""
    error: str = ""


@dataclass(slots=True)
class RunRecord:
    """A run's past.

    Attributes:
        approvals: Who said yes, by the digest of the plan they saw.
        forgiven: Failed steps whose playbook says to go on.
    """

    steps: dict[str, StepRecord]
    started: bool = False
    rolling_back: bool = False
    denied_by: str = ""
    asked_at: str = ""
    started_by: str = ""
    expired: bool = False
    approvals: dict[str, set[str]] = field(default_factory=dict)
    forgiven: set[str] = field(default_factory=set)
    failed_step: str = ""
    failed_error: str = ""
    result: str = ""
    exit_code: int | None = None

    def in_state(self, *states: StepState) -> tuple[str, ...]:
        """Ids of the steps in these states, in the playbook's order."""
        return tuple(name for name, step in self.steps.items() if step.state in states)

    def past_no_return(self, playbook: Playbook) -> bool:
        """Whether a step that cannot be undone was started: from there recovery goes forward."""
        return any(
            step.safety is Safety.DESTRUCTIVE
            and self.steps[step.id].state is not StepState.PENDING
            and self.steps[step.id].state is not StepState.SKIPPED
            for step in playbook.steps
        )


def replay(playbook: Playbook, events: Iterable[Event]) -> RunRecord:
    """The record of a run from its events; what was running when they stop is UNCERTAIN."""
    record = RunRecord({step.id: StepRecord() for step in playbook.steps})
    for event in events:
        apply_event(record, event)
    for step in record.steps.values():
        if step.state is StepState.RUNNING:
            step.state = advance(step.state, StepEvent.LOSE)
    return record


def apply_event(record: RunRecord, event: Event) -> None:
    """Carry one event into the record.

    Raises:
        IllegalMoveError: The event cannot follow what the record says.
    """
    fold = _FOLDS.get(event.type)
    if fold is not None:
        fold(record, event.fields)


def _text(fields: Mapping[str, Json], key: str) -> str:
    value = fields.get(key, "")
    return value if isinstance(value, str) else str(value)


def _mapping(fields: Mapping[str, Json], key: str) -> Arguments:
    value = fields.get(key)
    return value if isinstance(value, Mapping) else {}


def _step(record: RunRecord, fields: Mapping[str, Json]) -> StepRecord:
    return record.steps[_text(fields, "step")]


def _started(record: RunRecord, fields: Mapping[str, Json]) -> None:
    record.started = True
    record.started_by = record.started_by or _text(fields, "by")
    record.result, record.exit_code = "", None


def _skipped(record: RunRecord, fields: Mapping[str, Json]) -> None:
    step = _step(record, fields)
    step.state = advance(step.state, StepEvent.SKIP)
    step.say = _text(fields, "why")


def _intent(record: RunRecord, fields: Mapping[str, Json]) -> None:
    step = _step(record, fields)
    if step.state is StepState.RUNNING:
        step.state = advance(step.state, StepEvent.LOSE)
    step.state = advance(step.state, StepEvent.START)
    step.attempts += 1
    step.given = _mapping(fields, "do")


def _result(record: RunRecord, fields: Mapping[str, Json]) -> None:
    step = _step(record, fields)
    succeeded = fields.get("ok") is True
    step.state = advance(step.state, StepEvent.SUCCEED if succeeded else StepEvent.FAIL)
    step.changed = step.changed or fields.get("changed") is True
    step.out, step.say = _mapping(fields, "out"), _text(fields, "say")
    step.error = "" if succeeded else _text(fields, "error")
    if not succeeded and fields.get("final") is True:
        record.failed_step, record.failed_error = _text(fields, "step"), step.error
        if fields.get("then") == "continue":
            record.forgiven.add(record.failed_step)
        record.rolling_back = record.rolling_back or fields.get("then") == "rollback"


def _settled(record: RunRecord, fields: Mapping[str, Json]) -> None:
    """A look at the world said that the step in doubt was done."""
    step = _step(record, fields)
    if step.state is StepState.RUNNING:
        step.state = advance(step.state, StepEvent.LOSE)
    step.state = advance(step.state, StepEvent.SUCCEED)
    step.changed = True
    step.out, step.say = _mapping(fields, "out"), _text(fields, "say")


def _rollback(record: RunRecord, fields: Mapping[str, Json]) -> None:
    record.rolling_back = True


def _undo_intent(record: RunRecord, fields: Mapping[str, Json]) -> None:
    step = _step(record, fields)
    if step.state is StepState.RUNNING:
        step.state = advance(step.state, StepEvent.LOSE)
    step.state = advance(step.state, StepEvent.UNDO)


def _undo_result(record: RunRecord, fields: Mapping[str, Json]) -> None:
    step = _step(record, fields)
    succeeded = fields.get("ok") is True
    step.state = advance(step.state, StepEvent.SUCCEED if succeeded else StepEvent.FAIL)
    step.error = "" if succeeded else _text(fields, "error")


def _approved(record: RunRecord, fields: Mapping[str, Json]) -> None:
    people = record.approvals.setdefault(_text(fields, "plan"), set())
    people.add(_text(fields, "by"))


def _denied(record: RunRecord, fields: Mapping[str, Json]) -> None:
    record.denied_by = _text(fields, "by")
    record.rolling_back = True


def _asked(record: RunRecord, fields: Mapping[str, Json]) -> None:
    record.asked_at = record.asked_at or _text(fields, "asked_at")


def _expired(record: RunRecord, fields: Mapping[str, Json]) -> None:
    record.expired = True


def _end(record: RunRecord, fields: Mapping[str, Json]) -> None:
    record.result = _text(fields, "result")
    code = fields.get("exit_code")
    record.exit_code = code if isinstance(code, int) else None


_FOLDS: Mapping[EventType, Callable[[RunRecord, Mapping[str, Json]], None]] = {
    EventType.RUN_STARTED: _started,
    EventType.RUN_RESUMED: _started,
    EventType.STEP_SKIPPED: _skipped,
    EventType.STEP_INTENT: _intent,
    EventType.STEP_RESULT: _result,
    EventType.STEP_SETTLED: _settled,
    EventType.ROLLBACK_STARTED: _rollback,
    EventType.UNDO_INTENT: _undo_intent,
    EventType.UNDO_RESULT: _undo_result,
    EventType.APPROVAL_ASKED: _asked,
    EventType.APPROVAL_EXPIRED: _expired,
    EventType.APPROVAL_GIVEN: _approved,
    EventType.APPROVAL_DENIED: _denied,
    EventType.END: _end,
}
