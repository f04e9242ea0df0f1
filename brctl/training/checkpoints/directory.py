"""The directory of a job's slots on one machine: whose it is, what its files are called."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # a tmpfs, and the folder in it is private


@dataclass(frozen=True, slots=True)
class SlotDirectory:
    """Files of one job on one machine."""

    path: Path

    def own(self, rank: int) -> Path:
        """Slots of a rank that runs here."""
        return self.path / f"rank-{rank:05d}.own"

    def peer(self, rank: int) -> Path:
        """Slots of a rank that runs elsewhere and is kept here."""
        return self.path / f"rank-{rank:05d}.peer"

    @property
    def key(self) -> Path:
        """What helpers of one attempt prove to each other."""
        return self.path / "key"

    @property
    def lock(self) -> Path:
        """Held by the helper."""
        return self.path / "helper.lock"

    @property
    def wakeup_pipe(self) -> Path:
        """A FIFO: a rank writes a byte when it has a new copy."""
        return self.path / "doorbell"

    @property
    def never(self) -> Path:
        """Steps that led to a loss that is no number."""
        return self.path / "never.json"

    def files(self) -> Iterator[Path]:
        """All files of slots, ranks in order."""
        return iter(sorted([*self.path.glob("rank-*.own"), *self.path.glob("rank-*.peer")]))

    def create(self) -> None:
        """Make it, or take the one that is there if nobody else can look into it.

        Raises:
            PermissionError: It belongs to somebody else, is open to others, or is a link.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self.path.mkdir(mode=0o700)
        except FileExistsError:
            status = self.path.lstat()
            private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
            if not private or status.st_uid != os.getuid():
                raise PermissionError(
                    f"{self.path} is not a directory of user {os.getuid()} alone "
                    f"(owner {status.st_uid}, mode {status.st_mode & 0o7777:o}): the slots are the "
                    "model, so nothing is written there; remove it or set BRCTL_SLOT_DIR"
                ) from None
        if not self.wakeup_pipe.exists():
            os.mkfifo(self.wakeup_pipe, 0o600)


def default_directory(job: str) -> Path:
    """Where slots lie unless somebody says otherwise; outlives every process, not the machine."""
    return SHARED_MEMORY / f"brctl-{os.getuid()}-{job}"
