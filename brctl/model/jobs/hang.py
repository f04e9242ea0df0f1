"""What collective dumps and stacks say about a job that stands still."""

from dataclasses import dataclass
from enum import StrEnum


class SuspectReason(StrEnum):
    """Why a rank is held to be what the others wait for."""

    NEVER_JOINED = "never-joined"
    """Others wait in a collective that it never entered; it waits for nobody itself."""
    STALLED = "stalled"
    """Others completed a collective that it entered and never completed: its GPU stopped."""
    MISMATCH = "mismatch"
    """It entered another operation, or another size, under the same sequence number."""
    NO_DUMP = "no-dump"
    """It left no dump although others wait for it: it died or cannot answer."""
    STALE_DUMP = "stale-dump"
    """Its dump is much older than the others'."""


@dataclass(frozen=True, slots=True)
class SuspectRank:
    """One rank that the others wait for.

    Attributes:
        group: Name of the process group it shows in.
        sequence: Number of the collective, None for point-to-point or unknown.
        waiting: Ranks that wait for it, directly or through others.
        detail: One sentence.
    """

    rank: int
    reason: SuspectReason
    group: str
    sequence: int | None
    waiting: tuple[int, ...]
    detail: str
    node: str = ""


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """How far each rank of one process group came."""

    group: str
    description: str
    ranks: tuple[int, ...]
    last_enqueued: tuple[tuple[int, int], ...]
    last_completed: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class FlightRecorderAnalysis:
    """The answer of `brctl flight-recorder analyse`.

    Attributes:
        suspects: Ranks that stop the others, most waited-for first; empty when nobody is.
        waiting: Ranks that wait for somebody.
        common_cause: All entered and none completed: fabric, or who started the kernel.
        groups: Groups with something pending.
        notes: Dumps that could not be read, and what was assumed.
    """

    ranks: tuple[int, ...]
    suspects: tuple[SuspectRank, ...]
    waiting: tuple[int, ...]
    common_cause: bool
    groups: tuple[GroupProgress, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StackGroup:
    """Ranks whose stacks say the same.

    Attributes:
        ranks: Ascending; empty groups do not exist.
        stack: Innermost frame first, normalised; empty for ranks that did not answer.
        dominant: Shared by so many ranks that it counts as the healthy wait.
    """

    stack: tuple[str, ...]
    ranks: tuple[int, ...]
    dominant: bool


@dataclass(frozen=True, slots=True)
class ParallelGroup:
    """One parallel group of a job, `pp` with the ranks that differ along it."""

    axis: str
    ranks: tuple[int, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StackAnalysis:
    """The answer of `brctl stacks analyse`.

    Attributes:
        outliers: Ranks outside the dominant groups, the silent ones included.
        silent: Ranks that did not answer.
        group: Smallest parallel group that covers the outliers; None when none does.
        candidates: Groups that cover them equally well; more than one is a tie, said aloud.
        suspect_nodes: What to evict or look at: the single silent node when it explains more, else
            the group's nodes, else the outliers' own.
        reason: One sentence: why these nodes.
    """

    groups: tuple[StackGroup, ...]
    outliers: tuple[int, ...]
    silent: tuple[int, ...]
    group: ParallelGroup | None
    candidates: tuple[ParallelGroup, ...]
    suspect_ranks: tuple[int, ...]
    suspect_nodes: tuple[str, ...]
    reason: str
    rounds: int = 1
    notes: tuple[str, ...] = ()
