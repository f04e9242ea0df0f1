"""RUNS ON THE NODE. Knows which process is a rank of a job, and never trusts a number alone.

A recorded process must have the recorded start time and carry the job's marks in the environment
it was started with. Python 3.8, standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Iterable, Iterator
from typing import Any

RECORD_LIMIT = 1 << 20
LOCK_WAIT_S = 50.0
PARKED = "BRCTL_PARKED"
"""In the environment a process was parked with; it stays there when the process is a rank."""


def process_file(log_dir: str, rank: int) -> str:
    """Where the running process of a rank is recorded."""
    return os.path.join(log_dir, f"rank-{rank:05d}.process.json")


def exit_file(log_dir: str, rank: int) -> str:
    """Where the end of a rank is recorded."""
    return os.path.join(log_dir, f"rank-{rank:05d}.exit.json")


def log_file(log_dir: str, rank: int) -> str:
    """Where a rank writes."""
    return os.path.join(log_dir, f"rank-{rank:05d}.log")


def write_json(path: str, value: dict[str, Any]) -> None:
    """Replace a file so that a reader sees the old or the new content, never half."""
    partial = f"{path}.{os.getpid()}"
    with open(partial, "w") as stream:
        json.dump(value, stream)
    os.replace(partial, path)


def read_json(path: str) -> dict[str, Any] | None:
    """The object in a file, or None when there is none or it is torn."""
    try:
        with open(path) as stream:
            value = json.loads(stream.read(RECORD_LIMIT))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def remove(paths: Iterable[str]) -> None:
    """Remove files; those that are gone already do not matter."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


@contextlib.contextmanager
def locked(request: dict[str, Any]) -> Iterator[None]:
    """One change at a time to the processes of a job on this node.

    A controller that died may have left its start behind on the node; the next one must not start
    the same ranks beside it. Held by this process alone: what it forks does not inherit it. A file
    system without locks is no reason not to start.
    """
    path = os.path.join(request["log_dir"], f".{request['node']}.lock")
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        _lock(handle, time.monotonic() + LOCK_WAIT_S)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, deadline: float) -> None:
    while True:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            if time.monotonic() > deadline:
                raise OSError(
                    f"another start or stop on this node took {LOCK_WAIT_S:g} s"
                ) from None
            time.sleep(0.02)
        except OSError:
            return
        else:
            return


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat") as stream:
            fields = stream.read().rpartition(")")[2].split()
    except OSError:
        return None
    # A zombie holds its number but runs nothing.
    return None if fields[0] in ("Z", "X") else int(fields[19])


def environment_of(pid: int) -> set[bytes]:
    """The environment a process was started with, as bytes; empty when it cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            return set(stream.read().split(b"\0"))
    except OSError:
        return set()


def marks(request: dict[str, Any]) -> set[bytes]:
    """What the environment of every process of this job on this node holds.

    The directory tells two jobs of one name apart when nodes share a machine, as in a lab.
    """
    names = {"BRCTL_JOB": "job", "BRCTL_NODE": "node", "BRCTL_PROGRESS_DIR": "progress_dir"}
    return {f"{name}={request[key]}".encode() for name, key in names.items()}


def is_recorded(record: dict[str, Any], wanted: set[bytes]) -> bool:
    """Whether a record still names the very process it was written for."""
    pid = record.get("pid")
    if not isinstance(pid, int) or pid <= 1:
        return False
    return start_ticks(pid) == record.get("start_ticks") and wanted <= environment_of(pid)


def rank_record(request: dict[str, Any], rank: int) -> dict[str, Any] | None:
    """The record of a rank that still runs, else None."""
    record = read_json(process_file(request["log_dir"], rank))
    return record if record and is_recorded(record, marks(request)) else None


def processes_of(request: dict[str, Any]) -> list[int]:
    """Every process of this job on this node: ranks, and children that inherited the marks."""
    wanted = marks(request)
    found = []
    for name in os.listdir("/proc"):
        pid = int(name) if name.isdigit() else 0
        if pid and wanted <= environment_of(pid) and start_ticks(pid) is not None:
            found.append(pid)
    return found


def signal_all(pids: Iterable[int], number: int) -> None:
    """Signal the process groups of these processes; a stopped process must run to see SIGTERM."""
    groups = set()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            groups.add(os.getpgid(pid))
    for group in groups - {os.getpgrp()}:
        for each in (number, signal.SIGCONT):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, each)


def detach_output(path: str, flags: int) -> None:
    """Take nothing from and leave nothing to the SSH session: input from nowhere, output to a log.

    Args:
        path: The log.
        flags: `os.O_TRUNC` to begin it anew, `os.O_APPEND` to go on.
    """
    null = os.open(os.devnull, os.O_RDWR)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o640)
    for descriptor, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(descriptor, target)
    for descriptor in (null, log):
        os.close(descriptor)


def process_record(request: dict[str, Any], rank: int, pid: int) -> dict[str, Any]:
    """What is written about a rank's process once it runs."""
    return {
        "rank": rank,
        "pid": pid,
        "start_ticks": start_ticks(pid),
        "node": request["node"],
        "started_at": time.time(),
        "incarnation": request["incarnation"],
        "job": request["job"],
    }


def record_end(request: dict[str, Any], rank: int, status: int) -> int:
    """Write down how a rank ended; its exit status, negative for a signal."""
    ended = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
    write_json(
        exit_file(request["log_dir"], rank),
        {
            "rank": rank,
            "exit_status": ended,
            "at": time.time(),
            "incarnation": request["incarnation"],
        },
    )
    return ended
