"""A transport that is opened by the first command that needs it."""

from collections.abc import Mapping

from brctl.fanout.choose import open_transport
from brctl.fanout.contract import Expecting, Transport
from brctl.library.config import SshSettings
from brctl.model.answer import Answer, Command
from brctl.model.inventory import Node


class LateTransport:
    """The configured transport, opened by the first command that reaches a node.

    `brctl ls` and the status screen reach none, and importing an SSH library costs more than all
    the rest they do.
    """

    def __init__(self, ssh: SshSettings, nodes: Mapping[str, Node]) -> None:
        self._ssh = ssh
        self._nodes = nodes
        self._opened: Transport | None = None

    def expect(self, count: int) -> None:
        transport = self._open()
        if isinstance(transport, Expecting):
            transport.expect(count)

    async def run(self, node: Node, command: Command) -> Answer:
        return await self._open().run(node, command)

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    def _open(self) -> Transport:
        if self._opened is None:
            self._opened = open_transport(self._ssh, nodes=self._nodes)
        return self._opened
