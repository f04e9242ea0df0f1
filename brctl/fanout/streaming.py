"""Commands whose input and output pass on while they run, also over transports that cannot."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from brctl.fanout.contract import Streaming, Streams, Transport
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.errors import UsageError
from brctl.model.inventory import Node

T = TypeVar("T")

WHOLE_LIMIT_BYTES = 64 << 20
"""Input that a transport without streams holds in memory, once for each node in flight."""


class StreamingTransport:
    """Runs commands with the streams of their node; stands before the transport of `gather`.

    Nothing is spread over other processes: what passes through would pass through them as well.
    """

    def __init__(self, transport: Transport, streams_for: Callable[[Node], Streams]) -> None:
        self._transport = transport
        self._streams_for = streams_for

    async def run(self, node: Node, command: Command) -> CommandResult:
        """See `Streaming.stream`."""
        return await run_streamed(self._transport, node, command, self._streams_for(node))

    async def close(self) -> None:
        """Close what stands behind."""
        await self._transport.close()


async def run_streamed(
    transport: Transport, node: Node, command: Command, streams: Streams
) -> CommandResult:
    """Run a command with its streams, as well as this transport can."""
    if isinstance(transport, Streaming):
        return await transport.stream(node, command, streams)
    return await run_whole(transport, node, command, streams)


async def run_whole(
    transport: Transport, node: Node, command: Command, streams: Streams
) -> CommandResult:
    """All input first, then the command, then all its output: for what cannot stream."""
    started = time.perf_counter()
    try:
        async with asyncio.timeout(command.deadline_s):
            stdin = await read_whole(streams.stdin())
    except TimeoutError:
        detail = f"its input did not end within {command.deadline_s:g} s; this transport needs all"
        seconds = time.perf_counter() - started
        return CommandResult(node.name, Outcome.COMMAND_TIMED_OUT, None, b"", b"", seconds, detail)
    answer = await transport.run(node, replace(command, stdin=stdin))
    if streams.on_output is None:
        return answer
    streams.on_output(answer.stdout, False)
    streams.on_output(answer.stderr, True)
    return replace(answer, stdout=b"", stderr=b"")


async def beside(feeding: Awaitable[None], ending: Awaitable[T]) -> T:
    """What `ending` gives; `feeding` goes on beside it until then, and its failure ends both."""
    feeder, waiter = asyncio.ensure_future(feeding), asyncio.ensure_future(ending)
    try:
        await asyncio.wait({feeder, waiter}, return_when=asyncio.FIRST_COMPLETED)
        if not waiter.done():
            feeder.result()
        return await waiter
    finally:
        feeder.cancel()
        waiter.cancel()
        await asyncio.gather(feeder, waiter, return_exceptions=True)


async def feed_pipe(
    stdin: asyncio.WriteTransport, writable: asyncio.Event, pieces: AsyncIterator[bytes]
) -> None:
    """Give a process its input, no faster than it reads."""
    async for piece in pieces:
        stdin.write(piece)
        await writable.wait()
        if stdin.is_closing():
            return
    stdin.close()


async def read_whole(pieces: AsyncIterator[bytes]) -> bytes:
    """All of an input.

    Raises:
        UsageError: It is more than is held in memory.
    """
    kept = bytearray()
    async for piece in pieces:
        kept += piece
        if len(kept) > WHOLE_LIMIT_BYTES:
            raise too_much()
    return bytes(kept)


def too_much() -> UsageError:
    """What to say of input that is larger than a transport without streams takes."""
    return UsageError(
        f"more than {WHOLE_LIMIT_BYTES >> 20} MiB of input: this transport holds it whole",
        hint="--transport asyncssh streams it; or use the site's file system",
    )
