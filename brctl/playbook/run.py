"""The one record of a run that every front end, notice and report is made from."""

from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from brctl.model.runs.event import Event
from brctl.model.runs.playbook import Arguments, Json, Playbook, Safety
from brctl.model.runs.result import RunState
from brctl.playbook.run_record import RunRecord
from brctl.playbook.steps import StepState


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as its folder tells it.

    Attributes:
        record: What its journal says became of every step.
        damage: What is wrong about the journal, in sentences.
        alive: A process owns it, and its journal has no end yet.
        by: Who asked for it last.
        verdict: What the expressions of its playbook read of that verdict.
        guards: What each guard said when they were last asked; as planned before that.
        nodes: Those its inputs name.
        never_began: It was made, and long afterwards its journal has no line: whoever made it died
            before its process was started.
    """

    name: str
    run_dir: Path
    playbook: Playbook
    record: RunRecord
    events: tuple[Event, ...]
    damage: tuple[str, ...]
    alive: bool
    by: str
    verdict_id: str
    verdict: Arguments
    job: str
    nodes: tuple[str, ...]
    guards: tuple[Arguments, ...] = ()
    never_began: bool = False

    @property
    def state(self) -> RunState:
        """Where it stands."""
        if self.never_began and not self.alive:
            return RunState.LOST
        return self.record.state(alive=self.alive)

    @property
    def began_at(self) -> datetime | None:
        """Time of its first line."""
        return self.events[0].at if self.events else None

    @property
    def ended_at(self) -> datetime | None:
        """Time of its last line, when that says how it ended."""
        return self.events[-1].at if self.record.result is not None else None

    @property
    def seconds(self) -> float:
        """From its first line to its last."""
        if not self.events:
            return 0.0
        return (self.events[-1].at - self.events[0].at).total_seconds()

    @property
    def waiting(self) -> bool:
        """It asks for an approval and nobody is running it."""
        return self.state is RunState.WAITING and bool(self.asked("answer"))

    @property
    def open(self) -> bool:
        """It works, waits for people, or stopped half-way with changes nobody took back."""
        if self.state in (RunState.LOST, RunState.INTERRUPTED):
            return may_have_changed(self.playbook, self.record)
        return self.state in (RunState.STARTING, RunState.RUNNING, RunState.WAITING)

    def asked(self, key: str) -> str:
        """A field of what people were asked; "" when nothing was."""
        value: Json = self.record.question.get(key, "")
        return value if isinstance(value, str) else str(value)


_MAY_BE_OUT = (StepState.UNCERTAIN, StepState.FAILED, StepState.UNDOING, StepState.UNDO_FAILED)


def may_have_changed(playbook: Playbook, record: RunRecord) -> bool:
    """Whether something may be different because of a run."""
    risky = (StepState.UNCERTAIN, StepState.FAILED, StepState.UNDO_FAILED)
    return any(
        (step.changed and step.state not in (StepState.UNDONE, StepState.SKIPPED))
        or (step.state in risky and step.acted and playbook.step(name).safety is not Safety.READ)
        for name, step in record.steps.items()
    )


def nodes_held(playbook: Playbook, record: RunRecord) -> tuple[str, ...]:
    """Nodes a run took out of service and did not give back."""
    return _cordoned(playbook, record, (StepState.DONE,))


def nodes_in_doubt(playbook: Playbook, record: RunRecord) -> tuple[str, ...]:
    """Nodes a run may have taken, of which its journal does not tell what became."""
    return _cordoned(playbook, record, _MAY_BE_OUT)


def _cordoned(
    playbook: Playbook, record: RunRecord, states: Container[StepState]
) -> tuple[str, ...]:
    found: list[str] = []
    for name, step in record.steps.items():
        if playbook.step(name).uses == "node.cordon" and step.state in states and step.acted:
            done = step.state is StepState.DONE
            value = step.out.get("cordoned") if done else step.arguments.get("nodes")
            found += [str(node) for node in value] if isinstance(value, list) else []
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class UnreadableRun:
    """A run whose files are torn, missing or say what cannot be; it stands in lists of runs."""

    name: str
    why: str

    state: ClassVar = RunState.UNREADABLE
    alive: ClassVar = False
    waiting: ClassVar = False
    by: ClassVar = ""
    verdict_id: ClassVar = ""
    job: ClassVar = ""
    nodes: ClassVar[tuple[str, ...]] = ()
    events: ClassVar[tuple[Event, ...]] = ()
    began_at: ClassVar[datetime | None] = None
