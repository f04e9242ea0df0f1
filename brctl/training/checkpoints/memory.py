"""Whether a machine's memory holds the slots: counted before the first step."""

import os
from dataclasses import dataclass
from pathlib import Path

from brctl.training.checkpoints.slots import file_bytes

CGROUPS = Path("/sys/fs/cgroup")


class InsufficientMemoryError(Exception):
    """A machine cannot hold its slots; says what is needed, what is free, and what to do."""


@dataclass(frozen=True, slots=True)
class FreeMemory:
    """Bytes that can still be had, and which limit says so."""

    name: str
    free_bytes: int


def bytes_needed(capacities: list[int], present: list[Path]) -> int:
    """Bytes to allocate for files of these capacities, less what files already there hold."""
    held = sum(path.stat().st_blocks * 512 for path in present if path.exists())
    return max(0, sum(map(file_bytes, capacities)) - held)


def check_free_memory(needed_bytes: int, rooms: list[FreeMemory]) -> None:
    """Refuse what does not fit.

    Raises:
        InsufficientMemoryError: The tightest limit is too small.
    """
    tightest = min(rooms, key=lambda room: room.free_bytes)
    if needed_bytes > tightest.free_bytes:
        raise InsufficientMemoryError(
            f"the slots need {_bytes(needed_bytes)}, {tightest.name} has "
            f"{_bytes(tightest.free_bytes)} free: enlarge it (docker --shm-size, the pod's memory "
            "limit), shard the optimizer, or set BRCTL_SLOT_DIR"
        )


def rooms(
    directory: Path, cgroups: Path = CGROUPS, process: Path = Path("/proc/self")
) -> list[FreeMemory]:
    """The file system of the slots, and every memory limit over this process."""
    found = os.statvfs(directory)
    file_system = FreeMemory(f"the file system of {directory}", found.f_bavail * found.f_frsize)
    return [file_system, *_cgroup_rooms(cgroups, process)]


def _cgroup_rooms(root: Path, process: Path) -> list[FreeMemory]:
    """Memory files of cgroup v2 from this process upwards; pages of a tmpfs count there."""
    lines = (process / "cgroup").read_text().splitlines()
    own = next((line[3:] for line in lines if line.startswith("0::")), None)
    if own is None:
        return []
    leaf = root / own.lstrip("/")
    found = []
    for group in (leaf, *leaf.parents):
        if not group.is_relative_to(root):
            break
        limit, used = _number(group / "memory.max"), _number(group / "memory.current")
        if limit is not None and used is not None:
            found.append(FreeMemory(f"the memory limit of cgroup {group}", max(0, limit - used)))
    return found


def _number(path: Path) -> int | None:
    """A limit in bytes; None for `max`, and where there is no such file."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def _bytes(count: int) -> str:
    return f"{count} bytes ({count / 2**30:.2f} GiB)"
