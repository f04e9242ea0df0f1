"""What a journal says about a run: the state of every step, told by its events alone.

A resumed run knows nothing else of its past. An intent without a result makes a step UNCERTAIN.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from brctl.model.runs.event import Event, EventType
from brctl.model.runs.playbook import Arguments, Json, Playbook, Safety
from brctl.model.runs.result import NodeResult, RunState, read_node_result, read_result
from brctl.playbook.node_runs import ONLY, Waves, instance_of, split_instance
from brctl.playbook.steps import StepEvent, StepState, advance

TAKEN_BACK = (StepState.UNDONE, StepState.UNDO_FAILED)

AFTERWARDS = "afterwards"
"""What follows when a step with `after: failure` fails: what had failed before stays the cause."""


@dataclass(slots=True)
class StepRecord:
    """One step's past.

    Attributes:
        attempts: How often it was started.
        clean: How many of them failed before anything was done.
        changed: It reported that it changed something.
        arguments: Arguments of the latest attempt, as they were sent.
    """

    state: StepState = StepState.PENDING
    attempts: int = 0
    clean: int = 0
    changed: bool = False
    out: Arguments = field(default_factory=dict)
    arguments: Arguments = field(default_factory=dict)
    say: str = ""
    error: str = ""

    @property
    def acted(self) -> bool:
        """Whether any attempt may have touched the world."""
        return self.attempts > self.clean


@dataclass(slots=True)
class NodeRun:
    """The past of one node of `for_each`; a run without it has one node run, of no node.

    Attributes:
        given_up: A step failed with `next_node`: its own changes go back, the other nodes go on.
        result: None while it is not through.
        failed_step: Id of the step that failed, without the node.
    """

    started_at: str = ""
    given_up: bool = False
    result: NodeResult | None = None
    why: str = ""
    seconds: float = 0.0
    failed_step: str = ""
    failed_error: str = ""


@dataclass(slots=True)
class RunRecord:
    """A run's past.

    Attributes:
        step_ids: Of the playbook, in its order.
        steps: By instance, `burnin@gpu0412`; by step id without `for_each`.
        waves: The nodes that run side by side, in turn.
        claimed: Nodes it may take, since its guards last said so; others count them as taken.
        approvals: Who said yes, by the digest of the plan they saw.
        question: What people were asked since the run last began to act; empty for nothing.
        forgiven: Failed steps whose playbook says to go on.
    """

    step_ids: tuple[str, ...]
    steps: dict[str, StepRecord] = field(default_factory=dict)
    node_runs: dict[str, NodeRun] = field(default_factory=dict)
    waves: Waves = ()
    started: bool = False
    rolling_back: bool = False
    undone_because: str = ""
    denied_by: str = ""
    asked_at: str = ""
    question: Arguments = field(default_factory=dict)
    started_by: str = ""
    expired: bool = False
    claimed: tuple[str, ...] = ()
    approvals: dict[str, set[str]] = field(default_factory=dict)
    forgiven: set[str] = field(default_factory=set)
    failed_step: str = ""
    failed_error: str = ""
    result: RunState | None = None
    why: str = ""
    exit_code: int | None = None

    def lay_out(self, waves: Waves) -> None:
        """Give every node of these waves its node run of untouched steps."""
        self.waves = waves
        for node in (node for wave in waves for node in wave):
            self.node_runs[node] = NodeRun()
            for step_id in self.step_ids:
                self.steps[instance_of(step_id, node)] = StepRecord()

    def state(self, *, alive: bool) -> RunState:
        """Where the run stands, when a process owns it and when none does."""
        if alive:
            return RunState.RUNNING
        return self.result or (RunState.LOST if self.started else RunState.STARTING)

    def in_state(self, *states: StepState) -> tuple[str, ...]:
        """Instances of the steps in these states, in the playbook's order."""
        return tuple(name for name, step in self.steps.items() if step.state in states)

    @property
    def paused(self) -> bool:
        """Whether it waits because a guard said no: there is nothing that anybody could approve."""
        return self.result is RunState.WAITING and not self.question and not self.denied_by

    @property
    def waits_at_gate(self) -> bool:
        """Whether it waits for the approval of its playbook, which can expire."""
        is_asked = self.result is RunState.WAITING and bool(self.question) and not self.denied_by
        return is_asked and "about" not in self.question

    def past_no_return(self, playbook: Playbook, node: str = ONLY) -> bool:
        """Whether a step that cannot be undone was done: from there recovery goes forward."""
        return any(
            step.safety is Safety.DESTRUCTIVE
            and (name := instance_of(step.id, node)) in self.steps
            and self.steps[name].acted
            for step in playbook.steps
        )


def node_run_row(node_run: NodeRun) -> dict[str, Json]:
    """What became of one node, for documents."""
    return {
        "result": node_run.result or None,
        "why": node_run.why or None,
        "failed_step": node_run.failed_step or None,
        "seconds": node_run.seconds,
    }


def blank_record(playbook: Playbook, waves: Waves = ((ONLY,),)) -> RunRecord:
    """The record of a run that has not started."""
    record = RunRecord(tuple(step.id for step in playbook.steps))
    record.lay_out(waves)
    return record


def replay(playbook: Playbook, events: Iterable[Event]) -> RunRecord:
    """The record of a run from its events; what was running when they stop is UNCERTAIN.

    The nodes of a `for_each` are those that its first lines name, whatever would be chosen today.
    """
    record = blank_record(playbook, ((ONLY,),) if playbook.for_each is None else ())
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


def _node_run(record: RunRecord, fields: Mapping[str, Json]) -> NodeRun:
    return record.node_runs[_text(fields, "node")]


def _started(record: RunRecord, fields: Mapping[str, Json]) -> None:
    waves = fields.get("waves")
    if isinstance(waves, list):
        record.lay_out(tuple(tuple(str(node) for node in wave) for wave in waves))
    _resumed(record, fields)


def _resumed(record: RunRecord, fields: Mapping[str, Json]) -> None:
    record.started = True
    record.started_by = record.started_by or _text(fields, "by")
    record.result, record.why, record.exit_code = None, "", None
    record.question = {}
    if fields.get("forward") is True:
        _turn_forward(record)


def _turn_forward(record: RunRecord) -> None:
    """The rollback is over: what it took back is done again, and what failed is tried again."""
    record.rolling_back, record.undone_because = False, ""
    record.failed_step = record.failed_error = ""
    taken_back = {split_instance(name)[1] for name in record.in_state(*TAKEN_BACK)}
    for node, node_run in record.node_runs.items():
        if node_run.given_up:
            continue
        node_run.failed_step = node_run.failed_error = ""
        if node in taken_back:
            node_run.result, node_run.why = None, ""


def _node_started(record: RunRecord, fields: Mapping[str, Json]) -> None:
    _node_run(record, fields).started_at = _text(fields, "started_at")


def _node_ended(record: RunRecord, fields: Mapping[str, Json]) -> None:
    node_run, seconds = _node_run(record, fields), fields.get("seconds")
    node_run.result, node_run.why = read_node_result(_text(fields, "result")), _text(fields, "why")
    node_run.seconds = float(seconds) if isinstance(seconds, int | float) else 0.0


def _skipped(record: RunRecord, fields: Mapping[str, Json]) -> None:
    step = _step(record, fields)
    if step.state is StepState.RUNNING:
        step.state = advance(step.state, StepEvent.LOSE)
    step.state = advance(step.state, StepEvent.SKIP)
    step.say = _text(fields, "why")


def _intent(record: RunRecord, fields: Mapping[str, Json]) -> None:
    step = _step(record, fields)
    if step.state is StepState.RUNNING:
        step.state = advance(step.state, StepEvent.LOSE)
    step.state = advance(step.state, StepEvent.START)
    step.attempts += 1
    step.arguments = _mapping(fields, "do")


def _result(record: RunRecord, fields: Mapping[str, Json]) -> None:
    step = _step(record, fields)
    succeeded = fields.get("ok") is True
    step.state = advance(step.state, StepEvent.SUCCEED if succeeded else StepEvent.FAIL)
    step.changed = step.changed or fields.get("changed") is True
    step.out, step.say = _mapping(fields, "out"), _text(fields, "say")
    step.error = "" if succeeded else _text(fields, "error")
    step.clean += fields.get("acted") is False
    if succeeded:
        _came_right(record, _text(fields, "step"))
    elif fields.get("final") is True:
        _failed_for_good(record, _text(fields, "step"), _text(fields, "then"))


def _failed_for_good(record: RunRecord, instance: str, then: str) -> None:
    step_id, node = split_instance(instance)
    if then == "continue":
        record.forgiven.add(instance)
    if then in ("continue", AFTERWARDS):
        return
    node_run = record.node_runs[node]
    node_run.failed_step = record.failed_step = step_id
    node_run.failed_error = record.failed_error = record.steps[instance].error
    node_run.given_up = node_run.given_up or then == "next_node"
    record.rolling_back = record.rolling_back or then == "rollback"


def _came_right(record: RunRecord, instance: str) -> None:
    """A step that had failed succeeded in a resumed run: it is no longer what went wrong."""
    step_id, node = split_instance(instance)
    node_run = record.node_runs[node]
    if node_run.failed_step == step_id:
        node_run.failed_step = node_run.failed_error = record.failed_step = record.failed_error = ""


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
    record.undone_because = _text(fields, "because")


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


def _approval_asked(record: RunRecord, fields: Mapping[str, Json]) -> None:
    record.question = fields
    if "about" not in fields:
        record.asked_at = record.asked_at or _text(fields, "asked_at")


def _expired(record: RunRecord, fields: Mapping[str, Json]) -> None:
    record.expired = True


def _checked(record: RunRecord, fields: Mapping[str, Json]) -> None:
    claims = fields.get("claims")
    if isinstance(claims, list):
        record.claimed = tuple(str(node) for node in claims)


def _end(record: RunRecord, fields: Mapping[str, Json]) -> None:
    record.result, record.why = read_result(_text(fields, "result")), _text(fields, "why")
    code = fields.get("exit_code")
    record.exit_code = code if isinstance(code, int) else None


_FOLDS: Mapping[EventType, Callable[[RunRecord, Mapping[str, Json]], None]] = {
    EventType.RUN_STARTED: _started,
    EventType.RUN_RESUMED: _resumed,
    EventType.GUARDS_CHECKED: _checked,
    EventType.NODE_STARTED: _node_started,
    EventType.NODE_ENDED: _node_ended,
    EventType.STEP_SKIPPED: _skipped,
    EventType.STEP_INTENT: _intent,
    EventType.STEP_RESULT: _result,
    EventType.STEP_SETTLED: _settled,
    EventType.ROLLBACK_STARTED: _rollback,
    EventType.UNDO_INTENT: _undo_intent,
    EventType.UNDO_RESULT: _undo_result,
    EventType.APPROVAL_ASKED: _approval_asked,
    EventType.APPROVAL_EXPIRED: _expired,
    EventType.APPROVAL_GIVEN: _approved,
    EventType.APPROVAL_DENIED: _denied,
    EventType.END: _end,
}
