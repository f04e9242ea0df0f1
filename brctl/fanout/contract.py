"""The one seam to the nodes: run a command on a node, get its result, never an exception."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Streams:
    """What passes between us and one node's command while it runs.

    Attributes:
        stdin: Opens its input from the beginning; each node reads at its own pace.
        on_output: Told each piece of output and whether it is stderr, and then the result has no
            output; without it output is kept for the result, as `run` does.
        held: The command goes on for days and ends with its input, whose first piece is there at
            once; its stderr is told at its end.
    """

    stdin: Callable[[], AsyncIterator[bytes]]
    on_output: Callable[[bytes, bool], None] | None = None
    held: bool = False


HELD_STDERR_BYTES = 64 << 10
"""What a held command may say on stderr where that is kept until it ends."""


@runtime_checkable
class Streaming(Protocol):
    """A transport that passes input and output on while the command runs."""

    async def stream(self, node: Node, command: Command, streams: Streams) -> CommandResult:
        """As `Transport.run`; `command.stdin` is not used."""
        ...


@runtime_checkable
class Expecting(Protocol):
    """A transport that prepares for many nodes; `gather` tells it how many come."""

    def expect(self, count: int) -> None:
        """So many nodes will be asked next."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A transport that waits less long for a node that was silent a moment ago."""

    def was_silent(self, node: str, since: float) -> None:
        """Another process asked it twice and got no connection, at that time of the loop."""
        ...


class LoginFailedError(Exception):
    """A login failed; a transport makes a `CommandResult` of it and never raises it."""

    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail
