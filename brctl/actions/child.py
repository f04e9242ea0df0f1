"""A program on the controller: its output kept up to a limit, its whole process group ended."""

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from brctl.library.programs.child_start import end_process, start_process
from brctl.view.redact import redact

OUTPUT_LIMIT_BYTES = 1 << 20
LAST_LINE_LIMIT = 200
# What a program may expect of its surroundings; the rest of ours, secrets included, stays here.
KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")

MARK = "BRCTL_CHILD"
"""Every process that a program starts inherits it, whatever session it moves to."""

ROUNDS = 20

_running: dict[int, str] = {}


async def run_child(
    argv: Sequence[str], env: Mapping[str, str], log: Path, cwd: Path | None = None
) -> int:
    """Run a program to its end and append its output to a log; negative is the signal it died of.

    However this ends, the program and its process group are over; when it is cut off, also those
    of its children that made a session of their own, as Ansible's workers do.
    """
    mark = secrets.token_hex(8)
    with _Output(log) as output:
        try:
            return await _run_marked(argv, {**env, MARK: mark}, output, cwd)
        except asyncio.CancelledError:
            _kill_marked(mark)
            raise


async def _run_marked(
    argv: Sequence[str], env: Mapping[str, str], output: "_Output", cwd: Path | None
) -> int:
    process = await start_process(
        asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.DEVNULL, stdout=output.end, stderr=output.end,
            env=env, cwd=cwd, start_new_session=True,
        )
    )  # fmt: skip
    _running[process.pid] = env[MARK]
    output.reading()
    try:
        return await process.wait()
    finally:
        del _running[process.pid]
        # Its children too, also when the step ran out of time; what it left is over.
        await end_process(process)


def end_children() -> None:
    """End every program that still runs: this process is about to leave without looking back."""
    for group, mark in tuple(_running.items()):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        _kill_marked(mark)


def _kill_marked(mark: str) -> None:
    """Everybody who carries the mark; again while one of them was just born."""
    for _ in range(ROUNDS):
        found = [
            pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _has(pid, mark)
        ]
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def _has(pid: int, mark: str) -> bool:
    try:
        return f"{MARK}={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        # Gone, or another account's.
        return False


def kept_environment(*more: str) -> dict[str, str]:
    """The part of our environment that a program gets."""
    return {name: os.environ[name] for name in (*KEPT_ENVIRONMENT, *more) if name in os.environ}


def last_line(log: Path) -> str:
    """The last words of a program, without the secrets that can be recognised."""
    tail = log.read_bytes()[-4096:].decode("utf-8", "replace")
    lines = [line for line in tail.splitlines() if line.strip() and not line.startswith("--- ")]
    return redact(lines[-1].strip())[:LAST_LINE_LIMIT] if lines else ""


class _Output:
    """What a program writes, kept up to a limit; more is read and dropped, so it never waits."""

    def __init__(self, log: Path) -> None:
        self._start, self.end = os.pipe()
        os.set_blocking(self._start, False)
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._left = OUTPUT_LIMIT_BYTES

    def __enter__(self) -> "_Output":
        return self

    def reading(self) -> None:
        """The program has its end; only it and its children may keep it open."""
        os.close(self.end)
        self.end = -1
        asyncio.get_running_loop().add_reader(self._start, self._read)

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._start, 65536):
                os.write(self._log, chunk[: self._left])
                self._left = max(0, self._left - len(chunk))
            asyncio.get_running_loop().remove_reader(self._start)

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self._start)
        self._read()
        for descriptor in (self._start, self.end, self._log):
            if descriptor >= 0:
                os.close(descriptor)
