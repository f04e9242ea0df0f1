"""Whether every machine that shares a state directory sees the kernel's locks on its files.

Runs keep out of each other's way by such locks (decision 0199). On most file systems, local or
shared, that holds; some are mounted so that a lock is known to this machine only, and then nothing
may act.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from errno import ENOLCK, ENOSYS, EOPNOTSUPP
from pathlib import Path

from brctl.model.errors import UnavailableError

_MOUNTS = Path("/proc/self/mountinfo")
_OCTAL = re.compile(r"\\([0-7]{3})")
NO_LOCKS = frozenset({ENOLCK, ENOSYS, EOPNOTSUPP})
"""What a file system answers that has no locks at all."""

_LOCAL_ONLY: Mapping[str, frozenset[str]] = {
    "nfs": frozenset({"nolock", "local_lock=all", "local_lock=flock"}),
    "nfs4": frozenset({"nolock", "local_lock=all", "local_lock=flock"}),
    "cifs": frozenset({"nobrl"}),
    "smb3": frozenset({"nobrl"}),
    "lustre": frozenset({"localflock"}),
}
"""Options that make a lock one machine's own, by type of file system."""

_NEVER_SHARED = frozenset({"fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse"})
"""They are there to share files between machines, and their locks are always one machine's own."""

CACHED = frozenset({"nfs", "nfs4"})
"""A new run of another machine may be seen as late as their attributes are cached."""


@dataclass(frozen=True, slots=True)
class Mount:
    """What a path lies on."""

    point: str
    kind: str
    options: frozenset[str]


def mount_of(path: Path, mountinfo: str) -> Mount | None:
    """The mount a path lies on, by /proc/self/mountinfo; of two on one point the later one."""
    found: Mount | None = None
    for line in mountinfo.splitlines():
        here, _, there = line.partition(" - ")
        fields, more = here.split(" "), there.split(" ")
        if len(fields) < 6 or len(more) < 3:
            continue
        point = _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), fields[4])
        if path.is_relative_to(point) and (found is None or len(point) >= len(found.point)):
            options = frozenset((*fields[5].split(","), *more[2].split(",")))
            found = Mount(point, more[0], options)
    return found


def lock_problem(mount: Mount | None) -> str:
    """Why locks there cannot be trusted; "" when they can, or when nobody knows."""
    if mount is None:
        return ""
    if mount.kind in _NEVER_SHARED:
        return f"{mount.point} is {mount.kind}, whose locks other machines do not see"
    local = sorted(mount.options & _LOCAL_ONLY.get(mount.kind, frozenset()))
    if local:
        return f"{mount.point} is {mount.kind} mounted with {local[0]}: other machines see no locks"
    return ""


def mount_here(path: Path) -> Mount | None:
    """The same for this machine, now; None where the kernel does not tell."""
    try:
        return mount_of(path.resolve(), _MOUNTS.read_text())
    except OSError:
        return None


def refuse_local_locks(state_dir: Path) -> None:
    """Do nothing where two controllers could not see each other.

    Raises:
        UnavailableError: The state directory lies where a lock is one machine's own.
    """
    problem = lock_problem(mount_here(state_dir))
    if problem:
        raise UnavailableError(
            f"refused: {state_dir}: {problem}, so two controllers could act at once",
            hint="mount it with locks, or name a state_dir on another file system",
        )


def no_locks(path: object, error: OSError) -> UnavailableError:
    """What a file system without locks means for whoever needs one."""
    return UnavailableError(
        f"{path}: its file system has no locks ({error.strerror}), and nothing is done without",
        hint="name a state_dir on another file system",
    )
