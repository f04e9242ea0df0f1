"""What a command on nodes reads: a file, or a pipe that is kept for nodes whose turn comes later.

No more than one piece for each node is in memory, however long the input is.
"""

import asyncio
import os
import stat
import sys
import tempfile
from collections.abc import AsyncIterator
from typing import Protocol

from brctl.fanout.streaming import read_whole
from brctl.model.errors import UsageError

PIECE_BYTES = 256 << 10
PIPE_LIMIT_BYTES = 1 << 30
"""What a pipe may give: it is kept on disk, and one that never ends must not fill that."""


class CommandInput(Protocol):
    """Input that every node reads from its beginning, at its own pace."""

    def pieces(self) -> AsyncIterator[bytes]:
        """The input, for one node."""
        ...

    def close(self) -> None:
        """Forget what was kept."""
        ...


class NoInput:
    """An input that is at its end."""

    async def pieces(self) -> AsyncIterator[bytes]:
        """Nothing."""
        return
        yield b""

    def close(self) -> None:
        """Nothing was kept."""


class FileInput:
    """A file, from where it stands now unless that is said.

    Whoever shares the descriptor finds it there again.
    """

    def __init__(self, descriptor: int, start: int | None = None) -> None:
        self._descriptor = descriptor
        self._start = os.lseek(descriptor, 0, os.SEEK_CUR) if start is None else start

    async def pieces(self) -> AsyncIterator[bytes]:
        at = self._start
        while piece := os.pread(self._descriptor, PIECE_BYTES, at):
            at += len(piece)
            yield piece

    def close(self) -> None:
        """The descriptor belongs to whoever opened it."""


class HeldInput:
    """An input that is in memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    async def pieces(self) -> AsyncIterator[bytes]:
        yield self.data

    def close(self) -> None:
        """Memory goes by itself."""


class PipeInput:
    """A pipe, kept in a file without a name as it comes; read from the first node on."""

    def __init__(self, descriptor: int, limit_bytes: int = PIPE_LIMIT_BYTES) -> None:
        self._descriptor, self._limit_bytes = descriptor, limit_bytes
        self._kept = tempfile.TemporaryFile(prefix="brctl-stdin-")  # noqa: SIM115 - ours to the end
        self._size = 0
        self._listening = self._ended = False
        self._problem: Exception | None = None
        self._grew = asyncio.Event()

    async def pieces(self) -> AsyncIterator[bytes]:
        self._listen()
        at = 0
        while True:
            grew = self._grew
            while at < self._size:
                piece = os.pread(self._kept.fileno(), min(PIECE_BYTES, self._size - at), at)
                at += len(piece)
                yield piece
            if self._problem is not None:
                raise self._problem
            if self._ended:
                return
            if at == self._size:
                await grew.wait()

    def close(self) -> None:
        self._kept.close()

    def _listen(self) -> None:
        if not self._listening:
            self._listening = True
            asyncio.get_running_loop().add_reader(self._descriptor, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, PIECE_BYTES)
            self._keep(data)
        except (OSError, UsageError) as problem:
            data, self._problem = b"", problem
        if not data:
            self._ended = True
            asyncio.get_running_loop().remove_reader(self._descriptor)
        self._grew.set()
        self._grew = asyncio.Event()

    def _keep(self, data: bytes) -> None:
        if self._size + len(data) > self._limit_bytes:
            raise UsageError(
                f"stdin: more than {self._limit_bytes >> 20} MiB through a pipe",
                hint="give a file, which is not kept again: brctl run ... < FILE",
            )
        self._kept.write(data)
        self._kept.flush()
        self._size += len(data)


async def hold(stdin: CommandInput, deadline_s: float) -> HeldInput:
    """All of stdin, read once for nodes whose transport takes it before the command.

    Raises:
        UsageError: It is too much, or does not end in time.
    """
    try:
        async with asyncio.timeout(deadline_s):
            return HeldInput(await read_whole(stdin.pieces()))
    except TimeoutError:
        raise UsageError(
            f"stdin did not end within {deadline_s:g} s, and this transport needs all of it first",
            hint="no node was asked; if the command reads nothing: --no-stdin, or < /dev/null",
        ) from None


def stdin_input() -> CommandInput:
    """What stands on stdin for commands: a file or a pipe; never a terminal or another device."""
    try:
        # A closed one is None here, and its number may be any file of ours by now.
        descriptor = sys.stdin.fileno()
        mode = os.fstat(descriptor).st_mode
    except (AttributeError, OSError, ValueError):
        return NoInput()
    if stat.S_ISREG(mode):
        return FileInput(descriptor)
    return PipeInput(descriptor) if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else NoInput()
