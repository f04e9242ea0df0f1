"""Nodes and a way to them, for commands that ask no check: lighter than opening the whole world."""

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from brctl.fanout.choose import open_transport
from brctl.fanout.gather import gather
from brctl.inventory.load import load_inventory
from brctl.inventory.select import select
from brctl.library.config import Settings
from brctl.library.jobs import load_jobs
from brctl.model.answer import Answer, Command
from brctl.model.errors import GuardError, UsageError
from brctl.model.inventory import Inventory, Node

Progress = Callable[[int, int], None]
"""Told how many nodes have answered, of how many."""


@dataclass(slots=True)
class Gathered:
    """Answers as they come; what is here when someone presses Ctrl-C is not lost."""

    asked: tuple[str, ...]
    answers: dict[str, Answer] = field(default_factory=dict)

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


def choose(settings: Settings, include: str | None, exclude: str | None) -> Chosen:
    """The nodes a command line names; without `-w` none is meant.

    Raises:
        UsageError: `-w` is missing: a command on every node must be asked for by name.
    """
    if include is None:
        raise UsageError("on which nodes? give -w NODES", hint="-w @all means every node")
    inventory = load_inventory(settings)
    jobs = load_jobs(settings.jobs)
    groups = {f"job:{name}": job.nodes for name, job in jobs.items()}
    return Chosen(inventory.pick(select(inventory, include, exclude, groups)), inventory)


def refuse_when_readonly(settings: Settings, what: str) -> None:
    """A command of unknown effect does not run where changes are refused."""
    if settings.readonly:
        raise GuardError(f"{what} may change nodes and this context is read-only")


async def run_on_nodes(
    settings: Settings,
    chosen: Chosen,
    command_for: Callable[[Node], Command],
    gathered: Gathered,
    progress: Progress | None = None,
) -> None:
    """Run a command on nodes; every answer is in `gathered` as soon as it is there."""
    transport = open_transport(settings.ssh, chosen.inventory.nodes, keep=0)
    try:
        stream = gather(transport, chosen.nodes, command_for, limit=settings.ssh.fanout)
        async with aclosing(stream) as answers:
            async for answer in answers:
                gathered.answers[answer.node] = answer
                if progress:
                    progress(len(gathered.answers), len(chosen.nodes))
    finally:
        await transport.close()
