"""A client that runs a command on a node for us (srun, kubectl exec), as a child process.

When its command began, its bounded output, a polite end.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence

from brctl.fanout.contract import HELD_STDERR_BYTES, Streams
from brctl.fanout.streaming import feed_pipe
from brctl.library.programs.child_start import start_child

_MESSAGE_BYTES = 16_384
"""Room for the client's own words on stderr beside the command's."""

_END_GRACE_S = 10.0
"""How long it may take: srun ends its step in Slurm first, and killed would leave the job there."""


class ClientProcess(asyncio.SubprocessProtocol):
    """See the head of this file.

    Args:
        mark: What the command says first on stderr; its stdout may come before.
        limit_bytes: Most output of one stream.
        streams: Where stdout goes as it comes; None keeps it.

    Attributes:
        begun: Set when the command's first words came: it runs on the node.
        ended: Set when nothing more comes, or more came than was asked for.
        over_limit: Whether it was too much.
    """

    def __init__(self, mark: bytes, limit_bytes: int, streams: Streams | None = None) -> None:
        self._mark = mark
        held = streams is not None and streams.held
        self._stderr_bytes = min(limit_bytes, HELD_STDERR_BYTES) if held else limit_bytes
        self._room = {1: limit_bytes, 2: self._stderr_bytes + _MESSAGE_BYTES}
        self._on_output = streams.on_output if streams else None
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.SubprocessTransport | None = None
        self._was_started = False
        self.output = {1: bytearray(), 2: bytearray()}
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()
        self.over_limit = False
        self._heard_at = float("-inf")

    async def start(self, argv: Sequence[str], environ: Mapping[str, str]) -> None:
        """Start it; its input is open.

        Raises:
            OSError: There is no such program.
        """
        loop = asyncio.get_running_loop()
        self._was_started = True  # Given up while it starts, it may have begun already.
        try:
            self._transport = await start_child(
                loop.subprocess_exec(lambda: self, *argv, env=dict(environ), start_new_session=True)
            )
        except OSError:
            self._was_started = False
            raise

    def send_whole(self, stdin: bytes) -> None:
        """Hand it all its input."""
        pipe = self._transport.get_pipe_transport(0) if self._transport else None
        if isinstance(pipe, asyncio.WriteTransport):
            pipe.write(stdin)
            pipe.write_eof()

    async def send(self, pieces: AsyncIterator[bytes]) -> None:
        """Hand it its input as that comes."""
        pipe = self._transport.get_pipe_transport(0) if self._transport else None
        if isinstance(pipe, asyncio.WriteTransport):
            await feed_pipe(pipe, self._writable, pieces)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._heard_at = asyncio.get_running_loop().time()
        taken = data[: self._room[fd]]
        self._room[fd] -= len(taken)
        if fd == 1 and self._on_output is not None:
            self._on_output(taken, False)
        else:
            self.output[fd] += taken
        # The two streams overtake each other, and a client says nothing of its own on stdout.
        if not self.begun.is_set() and (fd == 1 or self._mark in self.output[2]):
            self.begun.set()
        if len(data) > len(taken):
            self.over_limit = True
            self.ended.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()

    def told(self, stderr: bytes) -> bytes:
        """The command's stderr as its result has it: nothing where it is passed on, as it is now.

        It is known only at the end: the client mixes its own words into it.
        """
        kept = stderr[: self._stderr_bytes]
        if self._on_output is None:
            return kept
        self._on_output(kept, True)
        return b""

    async def begins_within(self, seconds: float) -> bool:
        """Whether the command began, or the client ended, in time."""
        waits = {asyncio.create_task(event.wait()) for event in (self.begun, self.ended)}
        try:
            done, _ = await asyncio.wait(
                waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            return bool(done)
        finally:
            for task in waits:
                task.cancel()

    async def ends_within(self, seconds: float) -> bool:
        """Whether nothing more comes, or too much came, in time."""
        try:
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            return False
        return True

    @property
    def silent_s(self) -> float:
        """Seconds since anything came."""
        return asyncio.get_running_loop().time() - self._heard_at

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._transport.get_returncode() if self._transport else None

    @property
    def cut_short(self) -> bool:
        """Whether it was started and did not end by itself: it still runs, or was killed."""
        return self._was_started and (self.status is None or self.status < 0)

    async def end(self) -> None:
        """Let it end what it began elsewhere; SIGKILL only when it does not."""
        if self._transport is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.status is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._transport.get_pid(), number)
            await self._wait_ended()
        self._transport.close()

    async def _wait_ended(self) -> None:
        deadline = asyncio.get_running_loop().time() + _END_GRACE_S
        while self.status is None and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110 - the loop's own event comes after the pipes, which a flood keeps full
            await asyncio.sleep(0.02)


class Endings:
    """Clients that are being ended while their answers are already on their way."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def later(self, ending: Coroutine[None, None, None]) -> None:
        """Let it end beside whatever comes next."""
        task = asyncio.ensure_future(ending)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def wait(self) -> None:
        """Until all of them are gone."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
