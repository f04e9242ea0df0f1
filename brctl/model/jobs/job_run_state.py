"""Which ranks of a job have a process, as whoever started them knows it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SchedulerReason:
    """Why a scheduler says that something of a job ended, does not start or is not well.

    Attributes:
        node: "" for what is on no node yet.
        ranks: Whom it concerns; empty for the node itself.
        reason: The scheduler's own word, `OOMKilled`, `Evicted`, `NodeNotReady`.
        message: What it says besides; "" for nothing.
        what: The object that says it, `pod trainer-0-x7f2p`.
    """

    node: str
    ranks: tuple[int, ...]
    reason: str
    message: str
    what: str


@dataclass(frozen=True, slots=True)
class JobRunState:
    """Which ranks of a job have a process now.

    Attributes:
        incarnations: Marks of the starts whose ranks are alive; one for a sound job.
        unreachable: Nodes that could not be asked, with the reason.
        exits: Exit status by rank, negative for a signal, of ranks known to have ended.
        held: What the scheduler still keeps for the job although its ranks may be gone, as a
            sentence; "" for nothing. A job is only stopped when nothing is held.
        reasons: What the scheduler says of ranks and nodes that are not well.
    """

    alive: tuple[int, ...]
    gone: tuple[int, ...]
    incarnations: frozenset[str]
    unreachable: Mapping[str, str]
    exits: Mapping[int, int]
    held: str = ""
    reasons: tuple[SchedulerReason, ...] = ()
