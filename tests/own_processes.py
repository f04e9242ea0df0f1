"""What the test command starts, found again: ended with it, or by the next one.

Tests start daemons in sessions of their own (Slurm, labs, SSH servers), which outlive a pytest that
is killed, hold ports and speak to the daemons of the next run.
"""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

GRACE_S = 60.0
"""So long tests may take to tear down what they set up; a lab takes its network away."""
END_DEADLINE_S = 10.0
_EMPTY_LOOKS = 2

_PR_SET_CHILD_SUBREAPER = 36
_PROC = Path("/proc")
_ENDED: tuple[list[str], ...] = ([], ["Z"], ["X"])
"""States of a process that runs no more: X while it is collected, none to be read after that."""
_COMMAND_LENGTH = 160


class Interrupted(Exception):  # noqa: N818  # what was asked for is no error
    """A signal asked the test command to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def adopt_orphans() -> None:
    """Have whatever loses its starter become a child of this process instead of init's."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def raise_when_told_to_end() -> None:
    """Turn the signals that end a command into `Interrupted`."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _raise)


def _raise(number: int, _: FrameType | None) -> None:
    raise Interrupted(number)


def run(
    command: Sequence[str],
    folder: Path,
    environment: dict[str, str],
    beside: Sequence[Sequence[str]] = (),
) -> int:
    """The exit status of a command, once it and those beside it have ended.

    Interrupted, its tests may tear down what they set up.
    """
    started = [subprocess.Popen(each, cwd=folder, env=environment) for each in (command, *beside)]
    try:
        return _wait(started)[0]
    except Interrupted as interrupted:
        if interrupted.number != signal.SIGINT:  # that went from the terminal to all of them
            for each in started:
                for pid in (*_children(each.pid), each.pid):
                    _send(pid, signal.SIGINT)
        deadline = time.monotonic() + GRACE_S
        while any(each.poll() is None for each in started) and time.monotonic() < deadline:
            time.sleep(0.1)
        raise


def _wait(started: Sequence[subprocess.Popen[bytes]]) -> list[int]:
    """Wait for processes, and collect what was adopted: uncollected, tests take it for alive."""
    own = {each.pid: each for each in started}
    while own and (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)) is not None:
        process = own.pop(ended.si_pid, None)
        if process is None:
            os.waitpid(ended.si_pid, 0)
        else:
            process.wait()
    return [each.wait() for each in started]


def end_own() -> list[str]:
    """Kill what this process started and adopted; what that was."""
    return end_all(lambda: descendants(os.getpid()))


def end_leftovers(folder: Path) -> list[str]:
    """Kill what a test command of this folder left behind when it was killed; what that was."""
    return end_all(lambda: _marked_by_the_dead(folder))


def mark(folder: Path) -> str:
    """A last entry for PATH, the one variable that a lab hands on to its nodes."""
    return f"{_marks_of(folder)}{os.getpid()}-{_start_ticks(os.getpid())}"


def _marks_of(folder: Path) -> str:
    return f"{folder}/.test-run/"


def _marked_by_the_dead(folder: Path) -> list[int]:
    marks = _marks_of(folder).encode()
    found = []
    for pid in living():
        _, mark, rest = _read(pid, "environ").partition(marks)
        owner, _, ticks = rest.partition(b"\0")[0].partition(b":")[0].decode().partition("-")
        if mark and str(_start_ticks(int(owner))) != ticks:
            found.append(pid)
    return found


def end_all(find: Callable[[], Sequence[int]]) -> list[str]:
    """Kill until nothing is found: what is killed may just have started another.

    One look misses what changes its parent meanwhile, and what is killed lives on for a moment.
    """
    ended: dict[int, str] = {}
    deadline = time.monotonic() + END_DEADLINE_S
    empty_looks = 0
    while empty_looks < _EMPTY_LOOKS and time.monotonic() < deadline:
        left = find()
        for pid in left:
            ended.setdefault(pid, f"{_command(pid)} ({pid})")
            _send(pid, signal.SIGKILL)
        empty_looks = 0 if left or ended.keys() & set(living()) else empty_looks + 1
        time.sleep(0.02)
    return list(ended.values())


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def descendants(pid: int) -> list[int]:
    """What a process started, and what that started."""
    children = _children(pid)
    return [*children, *(each for child in children for each in descendants(child))]


def _children(pid: int) -> list[int]:
    return [each for each in living() if _stat(each)[1:2] == [str(pid)]]


def living() -> Iterator[int]:
    """Every other process but those that only wait to be collected, or just were."""
    for entry in os.listdir(_PROC):
        if entry.isdecimal() and int(entry) != os.getpid() and runs(int(entry)):
            yield int(entry)


def runs(pid: int) -> bool:
    """Whether a process still does something; one that only waits to be collected does not."""
    return _stat(pid)[:1] not in _ENDED


def pids_with(argument: str) -> list[int]:
    """Processes started with exactly this argument."""
    return [pid for pid in living() if argument.encode() in _read(pid, "cmdline").split(b"\0")]


def pids_inside(variable: str) -> list[int]:
    """Processes that have exactly this entry, NAME=value, in their environment."""
    return [pid for pid in living() if variable.encode() in _read(pid, "environ").split(b"\0")]


def _command(pid: int) -> str:
    """What it was started as, short: of many Pythons a name says nothing."""
    words = _read(pid, "cmdline").replace(b"\0", b" ") or _read(pid, "comm")
    return " ".join(words.decode(errors="replace").split())[:_COMMAND_LENGTH]


def _start_ticks(pid: int) -> int | None:
    """When a process started, in ticks since boot; tells it from the next user of its pid."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def _stat(pid: int) -> list[str]:
    """What follows the name in a process's stat: state, parent and so on; empty once it is gone."""
    return _read(pid, "stat").decode(errors="replace").rpartition(")")[2].split()


def _read(pid: int, name: str) -> bytes:
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""
