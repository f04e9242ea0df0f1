"""`transport: auto`: asyncssh for every node, except where ssh_config asks for more."""

from collections.abc import Callable, Iterable

from brctl.fanout.contract import Expecting, Remembering, Streams, Transport
from brctl.fanout.ssh_config import HostBlock, why_openssh
from brctl.fanout.streaming import run_streamed
from brctl.model.command import Command, CommandResult
from brctl.model.inventory import Node


class AutoTransport:
    """Sends each node through the transport that does what its ssh_config says.

    Args:
        fast: For nodes that the configuration does not touch.
        exact: Makes the transport for the others, when the first of them comes.
        blocks: The configuration's keywords of weight.
    """

    def __init__(
        self, fast: Transport, exact: Callable[[], Transport], blocks: Iterable[HostBlock]
    ) -> None:
        self._fast = fast
        self._make_exact = exact
        self._exact: Transport | None = None
        self._blocks = tuple(blocks)

    def expect(self, count: int) -> None:
        """So many nodes will be asked next."""
        if isinstance(self._fast, Expecting):
            self._fast.expect(count)

    def was_silent(self, node: str, since: float) -> None:
        """See `Remembering`."""
        if isinstance(self._fast, Remembering):
            self._fast.was_silent(node, since)

    async def run(self, node: Node, command: Command) -> CommandResult:
        """Run one command on one node; see `Transport.run`."""
        return await self._for(node).run(node, command)

    async def stream(self, node: Node, command: Command, streams: Streams) -> CommandResult:
        """Run a command and pass on what comes and goes; see `Streaming.stream`."""
        return await run_streamed(self._for(node), node, command, streams)

    def _for(self, node: Node) -> Transport:
        if not why_openssh(self._blocks, node.address):
            return self._fast
        if self._exact is None:
            self._exact = self._make_exact()
        return self._exact

    async def close(self) -> None:
        """Close both transports."""
        await self._fast.close()
        if self._exact is not None:
            await self._exact.close()
