"""How a run, and each of its node runs, stands or ended: one table, with the exit codes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from brctl.model.exit_codes import ExitCode
from brctl.model.runs.playbook import Json


class RunState(StrEnum):
    """Where a run stands; those up to LOCKED are results: the last line of a journal says one."""

    OK = "ok"
    PARTIAL = "partial"
    """Some nodes of `for_each` failed and were taken back."""
    ROLLED_BACK = "rolled_back"
    NEEDS_HUMAN = "needs_human"
    REFUSED = "refused"
    """A guard said no before anything changed."""
    WAITING = "waiting"
    """People must approve, or a guard said no after something changed."""
    DENIED = "denied"
    EXPIRED = "expired"
    INTERRUPTED = "interrupted"
    LOCKED = "locked"
    STARTING = "starting"
    """Its journal has no line yet."""
    RUNNING = "running"
    LOST = "lost"
    """Its process died before the end."""
    UNREADABLE = "unreadable"
    """Its files say something that cannot be, or that only a newer brctl knows."""

    @property
    def exit_code(self) -> ExitCode:
        """What a command that ran it tells its caller."""
        return _EXIT_CODES.get(self, ExitCode.UNKNOWN)


_EXIT_CODES: Mapping[RunState, ExitCode] = {
    RunState.OK: ExitCode.OK,
    RunState.PARTIAL: ExitCode.WARNING,
    RunState.ROLLED_BACK: ExitCode.ROLLED_BACK,
    RunState.NEEDS_HUMAN: ExitCode.NEEDS_HUMAN,
    RunState.REFUSED: ExitCode.REFUSED,
    RunState.WAITING: ExitCode.WAITING,
    RunState.DENIED: ExitCode.WAITING,
    RunState.EXPIRED: ExitCode.WAITING,
    RunState.INTERRUPTED: ExitCode.INTERRUPTED,
    RunState.LOCKED: ExitCode.LOCKED,
}

FAILED_RESULTS = frozenset({RunState.ROLLED_BACK, RunState.NEEDS_HUMAN})
"""Ends after which what follows a failure is done."""


def read_result(text: str) -> RunState:
    """A result as a journal or a file says it."""
    try:
        return RunState(text)
    except ValueError:
        return RunState.UNREADABLE


class NodeResult(StrEnum):
    """What became of one node of `for_each`."""

    OK = "ok"
    FAILED = "failed"
    """Its own changes were taken back."""
    NEEDS_HUMAN = "needs_human"
    SKIPPED = "skipped"
    UNREADABLE = "unreadable"
    """Only a newer brctl knows; what nobody can read is not well."""


NODE_FAILED = frozenset({NodeResult.FAILED, NodeResult.NEEDS_HUMAN, NodeResult.UNREADABLE})
"""Results that count against `max_failed`."""


def read_node_result(text: str) -> NodeResult:
    """What became of a node, as a journal says it."""
    try:
        return NodeResult(text)
    except ValueError:
        return NodeResult.UNREADABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """How a run ended, for `play history` and the guards that look back.

    Attributes:
        nodes: Those its inputs name.
        taken: Nodes it took out of service and did not give back.
        node_runs: What became of each node of `for_each`.
    """

    run: str
    playbook: str
    verdict: str = ""
    nodes: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    job: str = ""
    by: str = ""
    result: RunState
    exit_code: int
    seconds: float = 0.0
    ended_at: datetime
    steps: Mapping[str, str] = field(default_factory=dict)
    node_runs: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
