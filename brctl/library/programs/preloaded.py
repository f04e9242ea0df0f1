"""A run's process that reads its program while the run is planned, and is given the run then.

Reading it takes half a second of a quiet core, a second of a busy one, and meanwhile a job stands.
It opens and decides nothing; where no run comes it ends with whoever started it.
"""

import asyncio
import contextlib
import os
import socket
import subprocess  # noqa: TID251 - our own program, on this machine
from collections.abc import Iterator, Sequence
from pathlib import Path

DETACHED: Sequence[str] = ("/bin/sh", "-c", '"$@" &', "sh")
"""Starts its arguments and ends: the run outlives us, and whoever started it need not reap it."""

PRELOADED = "--preloaded"
TAKES_S = 60.0
"""For so long it may still be reading; a process started anew would not be faster."""

PATH_BYTES = 4096


class PreloadedProcess:
    """The end of the channel on which one such process waits."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    async def take(self, run_dir: Path, lock: int, log: int) -> bool:
        """Give it a run with its lock and its log; whether it has it."""
        self._channel.setblocking(False)
        try:
            socket.send_fds(self._channel, [os.fsencode(run_dir)], [lock, log])
            async with asyncio.timeout(TAKES_S):
                return await asyncio.get_running_loop().sock_recv(self._channel, 1) != b""
        except OSError:
            return self._took_it_after_all()

    def _took_it_after_all(self) -> bool:
        """From here on no late process can: its answer would reach nobody."""
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
            return self._channel.recv(1) != b""
        return False


@contextlib.contextmanager
def preloading(program: Sequence[str], *, wanted: bool = True) -> Iterator[PreloadedProcess | None]:
    """One process for one run; None where nothing is wanted, or none can be started."""
    channel = _started(program) if wanted else None
    if channel is None:
        yield None
        return
    with channel:
        yield PreloadedProcess(channel)


def _started(program: Sequence[str]) -> socket.socket | None:
    ours, theirs = socket.socketpair()
    with theirs:
        number = theirs.fileno()
        try:
            subprocess.run(  # noqa: S603 - our own module
                [*DETACHED, *program, PRELOADED, str(number)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=(number,),
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            ours.close()
            return None
    return ours


def given_run(number: int) -> list[str] | None:
    """In that process: what it would have been started with; None where no run comes."""
    with socket.socket(fileno=number) as channel:
        path, descriptors, *_ = socket.recv_fds(channel, PATH_BYTES, 2)
        if len(descriptors) < 2:
            return None
        lock, log = descriptors
        for stream in (1, 2):
            os.dup2(log, stream)
        os.close(log)
        try:
            channel.sendall(b"\0")
        except OSError:
            # Nobody waits for it any more: the run was given to another process.
            return None
    return [os.fsdecode(path), str(lock)]
