"""What NCCL's RAS service says of a job, beside the ranks of that job."""

from dataclasses import dataclass
from enum import StrEnum


class RasReason(StrEnum):
    """Why a rank is held to be what the others wait for."""

    LAGS = "lags"
    """It launched fewer operations than others of its communicator, twice with the same counts."""
    SILENT = "silent"
    """NCCL's own threads get no answer from its process."""
    DEAD = "dead"
    """NCCL gave its process up for good."""


@dataclass(frozen=True, slots=True)
class RasSuspect:
    """One rank that the others wait for.

    Attributes:
        node: "" where the process is none of the job's that is known.
        rank: In the job; None where its process is not known.
        communicator: Its hash; "" where the whole process is meant.
        detail: One sentence.
        is_seen: Its node sees the same, that the process is stopped or not there; of one that
            lags, another node's service says so too.
    """

    reason: RasReason
    node: str
    rank: int | None
    communicator: str
    detail: str
    is_seen: bool = False


@dataclass(frozen=True, slots=True)
class RasAnalysis:
    """The answer of `brctl nccl ras`.

    Attributes:
        asked: The node that was asked.
        version: Of its NCCL.
        communicators: How many there are.
        ranks: In the largest group of them.
        suspects: Whom the others wait for; empty when that cannot be told.
        waiting: Communicators whose counts stood still although unequal.
        moved: Those whose counts moved between two answers.
        unlisted: Lagging ranks that no answer names.
        failed: Sentences of ranks with errors of NCCL's.
        notes: What could not be told, and why.
    """

    asked: str
    version: str
    communicators: int
    ranks: int
    suspects: tuple[RasSuspect, ...] = ()
    waiting: int = 0
    moved: int = 0
    unlisted: int = 0
    failed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
