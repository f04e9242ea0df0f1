"""Hear a program that may print without end and never stop: what is kept is bounded, and the wait.

`subprocess.communicate` keeps all of it: a ticket program that prints `y` filled the memory.
"""

import os
import selectors
import subprocess  # noqa: TID251 - programs of this machine, not of nodes
import time
from dataclasses import dataclass

_READ_BYTES = 1 << 16
_PIPE_BYTES = 4096
"""A pipe that is ready takes so many without blocking (PIPE_BUF of Linux)."""


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """What a program printed, each stream up to a limit; the rest was read and thrown away.

    Attributes:
        cut: There was more on stdout than is kept.
    """

    stdout: bytes
    stderr: bytes
    cut: bool


@dataclass(slots=True)
class _Kept:
    data: bytearray
    seen_bytes: int = 0


def hear(
    process: "subprocess.Popen[bytes]", text: bytes, limit_bytes: int, deadline: float
) -> ProgramOutput:
    """Give a program its input and take its output, until it ends; the streams are pipes or None.

    Raises:
        subprocess.TimeoutExpired: It goes on at the deadline (`time.monotonic`); whoever started
            it ends it.
    """
    stdout, stderr = _Kept(bytearray()), _Kept(bytearray())
    left = memoryview(text)
    with selectors.DefaultSelector() as selector:
        for stream, kept in ((process.stdout, stdout), (process.stderr, stderr)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, kept)
        if process.stdin is not None:
            selector.register(process.stdin, selectors.EVENT_WRITE)
        while selector.get_map():
            for ready, _ in selector.select(_left_s(process, deadline)):
                if isinstance(ready.data, _Kept):
                    done = not _take(ready.fd, ready.data, limit_bytes)
                else:
                    left = _give(ready.fd, left)
                    done = not left
                if done:
                    selector.unregister(ready.fileobj)
                    if ready.data is None and process.stdin is not None:
                        process.stdin.close()
    process.wait(_left_s(process, deadline))
    return ProgramOutput(bytes(stdout.data), bytes(stderr.data), stdout.seen_bytes > limit_bytes)


def _take(descriptor: int, kept: _Kept, limit_bytes: int) -> bool:
    """Whether there was something; no more than the limit of it is kept."""
    data = os.read(descriptor, _READ_BYTES)
    kept.seen_bytes += len(data)
    kept.data += data[: limit_bytes - len(kept.data)]
    return bool(data)


def _give(descriptor: int, text: memoryview) -> memoryview:
    """What is left to give; nothing to a program that does not read on."""
    try:
        return text[os.write(descriptor, text[:_PIPE_BYTES]) :]
    except BrokenPipeError:
        return text[:0]


def _left_s(process: "subprocess.Popen[bytes]", deadline: float) -> float:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise subprocess.TimeoutExpired(process.args, 0.0)
    return left_s
