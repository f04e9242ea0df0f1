"""The fan-out is bounded, complete, and free of ties between nodes."""

import asyncio
import resource
from contextlib import aclosing

import pytest

from brctl.fanout.descriptors import raise_descriptor_limit
from brctl.fanout.gather import gather
from brctl.model.command import Command, CommandResult
from brctl.model.inventory import Node
from tests.fakes.transport import FakeTransport

NODES = [Node(f"n{i}", "localhost") for i in range(100)]


def ask(node: Node) -> Command:
    return Command(("true", node.name))


async def test_every_node_answers_exactly_once() -> None:
    """No node is lost, none comes twice."""
    transport = FakeTransport()
    names = [answer.node async for answer in gather(transport, NODES, ask, limit=7)]
    assert sorted(names) == sorted(node.name for node in NODES)
    assert transport.most_in_flight == 7


async def test_a_silent_node_costs_the_others_nothing() -> None:
    """All others have answered while one still waits for its own deadline."""
    transport = FakeTransport()
    transport.waits["n0"] = asyncio.Event()
    names = []
    async for answer in gather(transport, NODES, ask, limit=2):
        names.append(answer.node)
        if len(names) == 99:
            transport.waits["n0"].set()
    assert names[-1] == "n0"


async def test_leaving_early_ends_what_is_in_flight() -> None:
    """Ctrl-C or a satisfied caller leaves no command behind."""
    transport = FakeTransport()
    async with aclosing(gather(transport, NODES, ask, limit=5)) as answers:
        async for _ in answers:
            break
    assert transport.in_flight == 0
    assert len(transport.commands) < 20


async def test_a_bug_in_a_command_builder_is_raised_and_not_waited_for() -> None:
    """A program error ends the loop with its own exception."""

    def broken(node: Node) -> Command:
        raise LookupError(node.name)

    with pytest.raises(LookupError):
        [_ async for _ in gather(FakeTransport(), NODES, broken, limit=3)]


async def test_an_answer_says_when_it_came_however_late_it_is_read() -> None:
    """Everybody has answered before the first answer is read, and the clock of none goes on."""
    loop, transport = asyncio.get_running_loop(), FakeTransport()
    answers = gather(transport, NODES, ask, limit=len(NODES))
    first = await anext(answers)
    await asyncio.sleep(0)
    assert transport.in_flight == 0
    everybody_came_s = loop.time()
    ended = [first.ended_s, *[answer.ended_s async for answer in answers]]
    assert all(end is not None and end <= everybody_came_s for end in ended)


async def test_a_limit_below_one_is_refused() -> None:
    """Nothing in flight would wait for ever."""
    with pytest.raises(ValueError, match="limit 0"):
        [_ async for _ in gather(FakeTransport(), NODES, ask, limit=0)]


async def test_no_nodes_is_no_answers() -> None:
    """An empty fan-out ends at once."""
    answers: list[CommandResult] = [a async for a in gather(FakeTransport(), [], ask, limit=3)]
    assert answers == []


def test_the_descriptor_limit_is_raised_once_and_never_lowered() -> None:
    """Two calls leave the same limit."""
    raise_descriptor_limit()
    before, after = raise_descriptor_limit()
    assert before == after == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
