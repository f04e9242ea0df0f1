"""Kill a process at a moment drawn by chance, and look at the files that it leaves."""

import json
import os
import random
import select
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from brctl.engine.sweeps.sweep_file import PATTERN, read_sweep
from brctl.journal.store import EVENTS
from brctl.library.durable_files import DAMAGED

Work = Callable[[], int]
LATE_SHARE, LATE_FROM = 0.5, 0.6
"""So much of the moments falls behind this part of the time: most files are written at the end."""


@dataclass(slots=True)
class Tally:
    """What kills of one kind of command have shown.

    Attributes:
        kills: Processes that were still alive at their moment.
        missed: Those that had ended before it.
        parts: Parts of files that were left beside their targets, where they are in nobody's way.
        problems: What was not consistent, in sentences.
    """

    kills: int = 0
    missed: int = 0
    parts: int = 0
    problems: list[str] = field(default_factory=list)


def draw(random_: random.Random, length_s: float) -> float:
    """A moment in a time that a command usually takes."""
    late = random_.random() < LATE_SHARE
    return length_s * random_.uniform(LATE_FROM if late else 0.0, 1.1)


def begin(work: Work, log: Path) -> int:
    """A process of its own, forked, because importing brctl hundreds of times takes minutes."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        code = 99
        try:
            code = work()
        finally:
            os._exit(code)
    return pid


def run_whole(work: Work, log: Path) -> tuple[int, float]:
    """Let a process come to its end; its exit code and the seconds it took."""
    began = time.monotonic()
    code = os.waitstatus_to_exitcode(os.waitpid(begin(work, log), 0)[1])
    return code, time.monotonic() - began


def kill_after(seconds: float, work: Work, log: Path) -> bool:
    """SIGKILL a process and its group after so long; False when it had ended by itself."""
    pid = begin(work, log)
    descriptor = os.pidfd_open(pid)
    try:
        ended = bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)
    if not ended:
        os.kill(pid, signal.SIGKILL)
        # A process that was killed at once has no group of its own yet.
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def unreadable(state_dir: Path) -> Iterator[str]:
    """Each file of a state directory that cannot be read, or that somebody had to set aside."""
    for path in sorted(p for p in state_dir.rglob("*") if p.is_file() and not _is_part(p)):
        try:
            problem = _problem(path)
        except (ValueError, OSError, sqlite3.Error) as exc:
            problem = str(exc)
        if problem:
            yield f"{path.relative_to(state_dir)}: {problem}"


def parts(state_dir: Path) -> int:
    """Parts of files whose writer died; no pattern of a store finds them."""
    return sum(_is_part(path) for path in state_dir.rglob("*"))


def _is_part(path: Path) -> bool:
    return path.name.startswith(".")


def _problem(path: Path) -> str:
    if DAMAGED in path.name or path.suffix == ".damaged":
        return "was set aside"
    if path.match(PATTERN):
        return "" if read_sweep(path) is not None else "cannot be read"
    if path.suffix == ".json":
        json.loads(path.read_bytes())
    elif path.suffix == ".ndjson":
        # The journal of a killed run may end in half a line; whoever resumes it sets it aside.
        whole, _, torn = path.read_bytes().rpartition(b"\n")
        for line in whole.splitlines():
            json.loads(line)
        return "half a line" if torn and path.name != EVENTS else ""
    elif path.suffix == ".sqlite3":
        with closing(sqlite3.connect(path)) as database:
            (answer,) = database.execute("PRAGMA integrity_check").fetchone()
        return "" if answer == "ok" else str(answer)
    return ""
