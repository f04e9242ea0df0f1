"""Nodes and how to reach them, for commands that run no check: lighter than a whole context."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from brctl.backends.contract import Backend
from brctl.engine.controller.late_transport import LateTransport
from brctl.engine.controller.selection import moment_for, select_nodes
from brctl.fanout.contract import Streams
from brctl.fanout.gather import gather
from brctl.fanout.streaming import StreamingTransport
from brctl.inventory.load import load_inventory
from brctl.inventory.select import names_in
from brctl.library.config import Settings
from brctl.library.jobs import load_jobs
from brctl.model.command import Command, CommandResult
from brctl.model.errors import UsageError
from brctl.model.inventory import Inventory, Node
from brctl.model.jobs.job import Job

T = TypeVar("T")


@dataclass(slots=True)
class CommandResults:
    """Answers as they come; what is here when someone presses Ctrl-C is not lost."""

    asked: tuple[str, ...]
    answers: dict[str, CommandResult] = field(default_factory=dict)

    @property
    def missing(self) -> tuple[str, ...]:
        """Nodes that were asked and had not answered yet."""
        return tuple(name for name in self.asked if name not in self.answers)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The nodes a command line means, in the inventory that knows how others are reached."""

    nodes: tuple[Node, ...]
    inventory: Inventory

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes)


class LateContext:
    """Inventory and jobs of a context; its scheduler is opened by the selector that asks it."""

    def __init__(self, settings: Settings, inventory: Inventory | None = None) -> None:
        self._settings = settings
        self.inventory = inventory or load_inventory(settings)
        self.state_dir = settings.state_dir

    @cached_property
    def jobs(self) -> Mapping[str, Job]:
        return load_jobs(self._settings.jobs)

    @cached_property
    def backend(self) -> Backend:
        from brctl.backends.open import open_backend

        return open_backend(self._settings, self.transport, self.inventory)

    @cached_property
    def transport(self) -> LateTransport:
        return LateTransport(self._settings, self.inventory.nodes)


@asynccontextmanager
async def late_cluster(
    settings: Settings, inventory: Inventory | None = None
) -> AsyncIterator[LateContext]:
    """What selectors ask, for one command."""
    cluster = LateContext(settings, inventory)
    try:
        yield cluster
    finally:
        await cluster.transport.close()


async def choose(
    settings: Settings,
    include: str | None,
    exclude: str | None,
    inventory: Inventory | None = None,
) -> Chosen:
    """The nodes a command line means; all of them without `-w`. An inventory may be at hand."""
    async with late_cluster(settings, inventory) as cluster:
        names = await select_nodes(cluster, include, exclude)
    return Chosen(cluster.inventory.pick(names), cluster.inventory)


async def names_of_the_past(settings: Settings, text: str) -> tuple[str, ...]:
    """What a text means where records are looked up: a node may have left the inventory since."""
    async with late_cluster(settings) as cluster:
        return names_in(cluster.inventory, text, await moment_for(cluster, text))


def must_name(include: str | None) -> str:
    """What `-w` says.

    Raises:
        UsageError: It is missing: a command on every node must be asked for by name.
    """
    if include is None:
        raise UsageError("on which nodes? give -w NODES", hint="-w @all means every node")
    return include


async def choose_one(settings: Settings, text: str) -> Node:
    """The one node a text means.

    Raises:
        UsageError: It means several.
    """
    return only(text, (await choose(settings, text, None)).nodes)


def only(text: str, found: Sequence[T]) -> T:
    """The one thing a text means.

    Raises:
        UsageError: It means several, or none.
    """
    if len(found) != 1:
        raise UsageError(f"{text}: means {len(found)} nodes; name one")
    return found[0]


async def run_on_nodes(
    settings: Settings,
    chosen: Chosen,
    command_for: Callable[[Node], Command],
    gathered: CommandResults,
    on_answer: Callable[[CommandResult], None] | None = None,
    streams_for: Callable[[Node], Streams] | None = None,
) -> None:
    """Run a command on nodes; every answer is in `gathered` as soon as it is there.

    With streams each node's input and output pass on while its command runs.
    """
    transport = LateTransport(settings, chosen.inventory.nodes, keep=0)
    asked = StreamingTransport(transport, streams_for) if streams_for else transport
    try:
        stream = gather(asked, chosen.nodes, command_for, limit=settings.ssh.fanout)
        async with aclosing(stream) as answers:
            async for answer in answers:
                gathered.answers[answer.node] = answer
                if on_answer:
                    on_answer(answer)
    finally:
        await transport.close()
