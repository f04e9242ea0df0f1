"""A transport that is opened by the first command that needs it."""

from collections.abc import Mapping
from dataclasses import replace

from brctl.engine.controller.readonly import refuse_readonly
from brctl.fanout.choose import KEPT, open_transport
from brctl.fanout.contract import Expecting, Remembering, Streams, Transport
from brctl.fanout.streaming import run_streamed
from brctl.library.config import Settings
from brctl.model.command import Command, CommandResult
from brctl.model.inventory import Node


class LateTransport:
    """The configured transport, opened by the first command that reaches a node.

    `brctl ls` and the status screen reach none, and importing an SSH library costs more than all
    the rest they do. No command may take longer than `--timeout` says, whoever asks.
    """

    def __init__(self, settings: Settings, nodes: Mapping[str, Node], *, keep: int = KEPT) -> None:
        self._settings, self._ssh = settings, settings.ssh
        self._limit_s = settings.command_limit_s
        self._nodes = nodes
        self._keep = keep
        self._opened: Transport | None = None

    def expect(self, count: int) -> None:
        transport = self._open()
        if isinstance(transport, Expecting):
            transport.expect(count)

    def was_silent(self, node: str, since: float) -> None:
        transport = self._open()
        if isinstance(transport, Remembering):
            transport.was_silent(node, since)

    async def run(self, node: Node, command: Command) -> CommandResult:
        return await self._open().run(node, self._limited(command))

    async def stream(self, node: Node, command: Command, streams: Streams) -> CommandResult:
        return await run_streamed(self._open(), node, self._limited(command), streams)

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    def _limited(self, command: Command) -> Command:
        if self._limit_s is None or command.deadline_s <= self._limit_s:
            return command
        return replace(command, deadline_s=self._limit_s)

    def _open(self) -> Transport:
        if self._opened is None:
            if self._settings.readonly and self._ssh.makes_pods:
                refuse_readonly(self._settings, "privileged pods (node_pods.image)")
            self._opened = open_transport(self._ssh, self._nodes, keep=self._keep)
        return self._opened
