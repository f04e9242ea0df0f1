"""Find and end the processes of a lab by the tag in their environment."""

import json
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from brctl.lab.record import NODE_VARIABLE, TAG_VARIABLE
from brctl.library.durable_files import write_atomic
from brctl.model.errors import NeedsHumanError

PROC = Path("/proc")
END_DEADLINE_S = 60.0


def tagged(tag: str, node: str | None = None) -> tuple[int, ...]:
    """Living processes of a lab, or of one of its nodes."""
    wanted = [f"{TAG_VARIABLE}={tag}".encode()]
    if node is not None:
        wanted.append(f"{NODE_VARIABLE}={node}".encode())
    return tuple(pid for pid in _all() if _has(pid, wanted))


def in_namespace_of(pid: int) -> tuple[int, ...]:
    """Living processes that share the network namespace of a process; none if it is gone."""
    wanted = network_namespace(pid)
    if wanted is None or wanted == network_namespace(os.getpid()):
        return ()
    return tuple(other for other in _all() if network_namespace(other) == wanted)


def network_namespace(pid: int) -> str | None:
    """The kernel's name for a process's network namespace; None if the process is gone."""
    try:
        return os.readlink(PROC / str(pid) / "ns" / "net")
    except OSError:
        return None


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be collected does not."""
    return _state(pid) not in ("", "Z", "X")


def is_stopped(pid: int) -> bool:
    """Whether a process stands still, or is gone."""
    return _state(pid) in ("T", "", "Z", "X")


def start_ticks(pid: int) -> int | None:
    """When a process started, in ticks since boot; tells it from the next user of its pid."""
    try:
        return int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def record_process(file: Path, pid: int) -> None:
    """Note a process so that it can be told from the next user of its pid."""
    write_atomic(file, json.dumps({"pid": pid, "start_ticks": start_ticks(pid)}))


def recorded_process(file: Path) -> int | None:
    """The process that was noted; None when there is none or it is gone."""
    try:
        noted = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    pid, ticks = noted["pid"], noted["start_ticks"]
    return pid if is_alive(pid) and start_ticks(pid) == ticks else None


def parent(pid: int) -> int | None:
    """Process id of a process's parent; None if the process is gone."""
    try:
        return int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def command_line(pid: int) -> tuple[bytes, ...]:
    """The words a process was started with; none if it is gone."""
    try:
        return tuple((PROC / str(pid) / "cmdline").read_bytes().split(b"\0"))
    except OSError:
        return ()


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Signal processes; those that are gone already do not matter."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def end_tagged(tag: str) -> None:
    """Kill every process of a lab and wait until none is left.

    Raises:
        NeedsHumanError: Some process outlives SIGKILL, as one in uninterruptible sleep does.
    """
    deadline = time.monotonic() + END_DEADLINE_S
    while left := tagged(tag):
        send(left, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise NeedsHumanError(f"processes of the lab do not end: {', '.join(map(str, left))}")
        time.sleep(0.01)


def wait_gone(pids: Iterable[int], deadline_s: float = END_DEADLINE_S) -> None:
    """Wait until processes have ended."""
    deadline = time.monotonic() + deadline_s
    for pid in pids:
        while is_alive(pid) and time.monotonic() < deadline:
            time.sleep(0.005)


def _all() -> Iterator[int]:
    me = os.getpid()
    for entry in os.listdir(PROC):
        if entry.isdecimal() and int(entry) != me:
            yield int(entry)


def _has(pid: int, wanted: list[bytes]) -> bool:
    try:
        variables = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return all(variable in variables for variable in wanted) and is_alive(pid)


def _state(pid: int) -> str:
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""
