"""A transport that is opened by the first command that needs it."""

from collections.abc import Mapping
from dataclasses import replace

from brctl.fanout.choose import KEPT, open_transport
from brctl.fanout.contract import Expecting, Transport
from brctl.library.config import Settings
from brctl.model.command import Command, CommandResult
from brctl.model.inventory import Node


class LateTransport:
    """The configured transport, opened by the first command that reaches a node.

    `brctl ls` and the status screen reach none, and importing an SSH library costs more than all
    the rest they do. No command may take longer than `--timeout` says, whoever asks.
    """

    def __init__(self, settings: Settings, nodes: Mapping[str, Node], *, keep: int = KEPT) -> None:
        self._ssh = settings.ssh
        self._limit_s = settings.command_limit_s
        self._nodes = nodes
        self._keep = keep
        self._opened: Transport | None = None

    def expect(self, count: int) -> None:
        transport = self._open()
        if isinstance(transport, Expecting):
            transport.expect(count)

    async def run(self, node: Node, command: Command) -> CommandResult:
        if self._limit_s is not None and command.deadline_s > self._limit_s:
            command = replace(command, deadline_s=self._limit_s)
        return await self._open().run(node, command)

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    def _open(self) -> Transport:
        if self._opened is None:
            self._opened = open_transport(self._ssh, self._nodes, keep=self._keep)
        return self._opened
