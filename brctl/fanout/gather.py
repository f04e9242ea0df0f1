"""A command on many nodes at once: one answer per node as it arrives, bounded, cancel-safe."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import replace

from brctl.fanout.contract import Expecting, Transport
from brctl.model.command import Command, CommandResult
from brctl.model.inventory import Node


async def gather(
    transport: Transport,
    nodes: Sequence[Node],
    command_for: Callable[[Node], Command],
    *,
    limit: int,
) -> AsyncGenerator[CommandResult, None]:
    """Yield one answer per node in the order they arrive, at most `limit` nodes in flight.

    A dead node holds one slot until its own deadline and costs the others nothing. Commands are
    built when their turn comes, so a thousand bundles are never in memory together. Leaving the
    loop early or cancelling it ends every command in flight.
    """
    if limit < 1:
        raise ValueError(f"limit {limit}: at least one node must be in flight")
    if isinstance(transport, Expecting):
        transport.expect(len(nodes))
    answers: asyncio.Queue[CommandResult | BaseException] = asyncio.Queue()
    waiting = iter(nodes)
    workers = [
        asyncio.create_task(_work(transport, waiting, command_for, answers))
        for _ in range(min(limit, len(nodes)))
    ]
    try:
        for _ in nodes:
            answer = await answers.get()
            if isinstance(answer, BaseException):
                raise answer
            yield answer
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


def arrived(answer: CommandResult) -> CommandResult:
    """An answer with the moment it came: whoever reads it may be busy with another node's words."""
    if answer.ended_s is not None:
        return answer
    return replace(answer, ended_s=asyncio.get_running_loop().time())


async def _work(
    transport: Transport,
    waiting: Iterator[Node],
    command_for: Callable[[Node], Command],
    answers: asyncio.Queue[CommandResult | BaseException],
) -> None:
    try:
        for node in waiting:
            answers.put_nowait(arrived(await transport.run(node, command_for(node))))
    except Exception as exc:  # noqa: BLE001 - a bug in here must end the loop above, not stall it
        answers.put_nowait(exc)
