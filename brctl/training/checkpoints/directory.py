"""The directory of a job's slots on one machine: whose it is, what its files are called."""

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_LOOK_EVERY_S = 0.05
LOCK_WAIT_S = 30.0
"""The helper of the attempt before may still be at its last copy."""

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

    def take_lock(self, wait_s: float = LOCK_WAIT_S) -> int:
        """The lock, held for as long as the descriptor returned is open.

        Raises:
            OSError: Somebody else has it, longer than a helper takes to end.
        """
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT, 0o600)
        limit_s = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > limit_s:
                    os.close(descriptor)
                    raise OSError(
                        f"{self.path} is in use: a helper holds {self.lock.name} for {wait_s:g} s; "
                        "end the job of that name on this machine, or give this one another "
                        "BRCTL_JOB or BRCTL_SLOT_DIR"
                    ) from None
                time.sleep(_LOOK_EVERY_S)
            else:
                return descriptor

    def remove_unfinished(self) -> None:
        """Files that a process ended by SIGKILL was just making: they hold memory for nobody."""
        for path in self.path.glob("rank-*.new"):
            path.unlink(missing_ok=True)

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
