"""The one seam to the nodes: run a command on a node, get its result, never an exception."""

from typing import Protocol, runtime_checkable

from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Node


class Transport(Protocol):
    """A way to run commands on nodes. Every implementation passes tests/contract/transport.

    `run` never raises for what a node or the network did: refused, dead, silent, babbling and
    half-dead nodes come back as a `CommandResult`: the outcome that applies, the output so far.
    `asyncio.CancelledError` passes through. Nothing a node sends is evaluated.
    """

    async def run(self, node: Node, command: Command) -> CommandResult:
        """Run one command on one node within its own deadlines."""
        ...

    async def close(self) -> None:
        """Close connections and end processes this transport started."""
        ...


@runtime_checkable
class Expecting(Protocol):
    """A transport that prepares for many nodes; `gather` tells it how many come."""

    def expect(self, count: int) -> None:
        """So many nodes will be asked next."""
        ...


class LoginFailedError(Exception):
    """A login failed; a transport makes a `CommandResult` of it and never raises it."""

    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail
