"""The code a job's ranks run: which release now, what changed when, by whom and why."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import PurePosixPath


class ChangeState(StrEnum):
    """Where a recorded change of a job's code stands."""

    PENDING = "pending"
    APPLIED = "applied"
    ROLLED_BACK = "rolled-back"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class JobCode:
    """The code part of a job: where releases lie on the nodes, and which one the ranks start from.

    Attributes:
        releases: Directory on the nodes with one directory a release.
        start: Name of the release job.yaml names: the first one.
        version: Name of the release the ranks start from now.
        digest: What its content must be; "" as long as nobody started it.
        change: The applied change that brought it; "" for the release job.yaml names.
        pending: The change that waits; "" for none.
    """

    releases: PurePosixPath
    start: str
    version: str
    digest: str = ""
    change: str = ""
    pending: str = ""

    @property
    def directory(self) -> PurePosixPath:
        return self.releases / self.version


@dataclass(frozen=True, slots=True)
class CodeStart:
    """One start of the ranks from a release."""

    run: str
    version: str
    change: str
    digest: str
    checkpoint: str
    at: datetime


@dataclass(frozen=True, slots=True)
class CodeChange:
    """One change of a job's code, from the wish to what became of it.

    Attributes:
        version: The release it brings, a directory of `releases`.
        digest: Digest of its content on the nodes when it was recorded.
        urgent: It is to be applied now; others wait for the next restart.
        waits_since: When the oldest change it replaced began to wait; its window counts from here.
        state_by: The run that brought it into its state, or the change that superseded it.
    """

    id: str
    version: str
    digest: str
    urgent: bool
    why: str
    by: str
    recorded_at: datetime
    waits_since: datetime
    state: ChangeState
    state_by: str
    state_at: datetime
