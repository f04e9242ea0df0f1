"""Where a rank's checkpoints lie and who its machine is, as its environment says."""

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from brctl.training.checkpoints.directory import default_directory

_JOB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Settings:
    """What is the machine's and the site's, not the script's.

    Attributes:
        directory: Slots of this machine, in a tmpfs.
        disk: Where every `disk_every`-th step goes as well; None for memory only.
        host: Address that other machines reach this one by.
        agree_timeout_s: A rank that waits longer for the others ends with gloo's error.
    """

    job: str
    directory: Path
    ranks_per_machine: int = 1
    disk: Path | None = None
    disk_every: int = 100
    host: str = "127.0.0.1"
    agree_timeout_s: float = 1800.0

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> "Settings":
        """Read BRCTL_JOB, BRCTL_SLOT_*, and LOCAL_WORLD_SIZE and MASTER_ADDR of the launcher.

        Raises:
            ValueError: A name or number makes no sense.
        """
        job = environ.get("BRCTL_JOB", "job")
        if not _JOB_NAME.fullmatch(job):
            raise ValueError(f"BRCTL_JOB is {job!r}: letters, digits and . _ - make a job's name")
        disk = environ.get("BRCTL_SLOT_DISK")
        return cls(
            job=job,
            directory=Path(environ.get("BRCTL_SLOT_DIR") or default_directory(job)),
            ranks_per_machine=_count(environ, "LOCAL_WORLD_SIZE", 1),
            disk=Path(disk) if disk else None,
            disk_every=_count(environ, "BRCTL_SLOT_DISK_EVERY", 100),
            host=environ.get("BRCTL_SLOT_HOST") or _own_address(environ.get("MASTER_ADDR", "")),
        )


def _count(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name) or str(default)
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"{name} is {text!r}, not a number above zero")
    return int(text)


def _own_address(other: str) -> str:
    """The address this machine talks to `other` from; asks the routing table and sends nothing."""
    try:
        family, kind, *_, address = socket.getaddrinfo(other, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"
