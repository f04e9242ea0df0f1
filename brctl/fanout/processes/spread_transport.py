"""asyncssh in this process, or in several when more nodes come than one process serves well."""

from collections.abc import Callable, Mapping, Sequence

from brctl.fanout.contract import Remembering, Streams, Transport
from brctl.fanout.processes.shards import Shard, shard_count, shard_of, start_shards
from brctl.fanout.streaming import run_streamed
from brctl.library.config import SshSettings
from brctl.model.command import Command, CommandResult
from brctl.model.inventory import Node

SPREAD_OVER = 2000
"""Nodes that one process serves; starting others costs each half a second of CPU."""


class SpreadTransport:
    """Goes direct until it is told that many nodes come.

    Args:
        ssh: Settings; `shards` is how many processes there are then.
        nodes: The inventory, for nodes that others jump through.
        keep: Idle connections that stay open, of all processes together.
        direct: Makes the transport of this process.
    """

    def __init__(
        self,
        ssh: SshSettings,
        nodes: Mapping[str, Node],
        keep: int,
        direct: Callable[[], Transport],
    ) -> None:
        self._ssh = ssh
        self._nodes = nodes
        self._keep = keep
        self._make_direct = direct
        self._direct: Transport | None = None
        self._silent: dict[str, float] = {}
        self.shards: Sequence[Shard] = ()

    def expect(self, count: int) -> None:
        """Start the other processes when so many nodes are too many for this one."""
        wanted = shard_count(self._ssh)
        if count > SPREAD_OVER and wanted > 1 and not self.shards and self._direct is None:
            self.shards = start_shards(wanted, self._keep // wanted)

    def was_silent(self, node: str, since: float) -> None:
        """See `Remembering`; the other processes learn it by themselves."""
        self._silent[node] = since

    async def run(self, node: Node, command: Command) -> CommandResult:
        """Run one command on one node; see `Transport.run`."""
        shard = shard_of(node, self.shards)
        if shard is not None:
            return await shard.run(node, command, self._ssh, self._nodes)
        return await self._here().run(node, command)

    async def stream(self, node: Node, command: Command, streams: Streams) -> CommandResult:
        """Run a command and pass on what comes and goes, in this process; see `Streaming`."""
        return await run_streamed(self._here(), node, command, streams)

    async def close(self) -> None:
        """End the processes and the connections."""
        for shard in self.shards:
            await shard.close()
        if self._direct is not None:
            await self._direct.close()

    def _here(self) -> Transport:
        if self._direct is None:
            self._direct = self._make_direct()
            if isinstance(self._direct, Remembering):
                for node, since in self._silent.items():
                    self._direct.was_silent(node, since)
        return self._direct
