"""Runs commands through the connection broker, and without it when there is none.

A command that was with the broker when it ended is DIED and not run again: only its sender knows
whether that would be safe. Every later command goes straight to its node. One that is held goes
there from the beginning: nobody could share its connection, and a broker that ended would cut those
of a whole fleet.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from brctl.fanout.contract import Streams, Transport
from brctl.fanout.conversation import Conversation, ConversationEndedError
from brctl.fanout.processes.broker_place import is_ours, make_private
from brctl.fanout.streaming import run_streamed, run_whole
from brctl.library.config import SshSettings
from brctl.library.own_program import own_program
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.errors import UnavailableError
from brctl.model.inventory import Node

START_S = 5.0
"""How long a broker may take to come up before we go without."""

LOGINS_AT_ONCE = 64
"""At the broker, for all askers together; each asker's own `-f` bounds what it asks at once."""

_LOOK_S = 0.02


class BrokerTransport:
    """One conversation with the broker, started when there is none.

    Args:
        ssh: Settings; the broker keeps connections apart by those that bear on a login.
        nodes: The inventory, for nodes that others jump through.
        path: The broker's socket.
        direct: Makes the transport used when no broker can be reached, and for what is held.
    """

    def __init__(
        self,
        ssh: SshSettings,
        nodes: Mapping[str, Node],
        path: Path,
        direct: Callable[[], Transport],
    ) -> None:
        self._ssh = _login_settings(ssh)
        self._nodes = nodes
        self._path = path
        self._make_direct = direct
        self._direct: Transport | None = None
        self._no_broker = False
        self._opening = asyncio.Lock()
        self._conversation: Conversation | None = None

    async def run(self, node: Node, command: Command) -> CommandResult:
        """Run one command on one node; see `Transport.run`."""
        conversation = await self._open()
        if conversation is None:
            return await self._go_direct().run(node, command)
        started = time.perf_counter()
        try:
            return await conversation.ask(node, command)
        except ConversationEndedError:
            seconds = time.perf_counter() - started
            detail = "the connection broker ended while the command ran"
            return CommandResult(node.name, Outcome.DIED, None, b"", b"", seconds, detail)

    async def stream(self, node: Node, command: Command, streams: Streams) -> CommandResult:
        """What is held, straight to its node; the broker takes and gives all else whole."""
        if streams.held:
            return await run_streamed(self._go_direct(), node, command, streams)
        return await run_whole(self, node, command, streams)

    async def close(self) -> None:
        """End the conversation; the broker keeps its connections for the next command."""
        if self._conversation is not None:
            await self._conversation.close()
        if self._direct is not None:
            await self._direct.close()

    def _go_direct(self) -> Transport:
        if self._direct is None:
            self._direct = self._make_direct()
        return self._direct

    async def _open(self) -> Conversation | None:
        async with self._opening:
            if self._conversation is None and not self._no_broker:
                await self._connect()
            lost = self._conversation is None or self._conversation.ended
            return None if lost else self._conversation

    async def _connect(self) -> None:
        try:
            make_private(self._path.parent)
        except UnavailableError:  # `doctor` says why; the nodes are asked all the same
            self._no_broker = True
            return
        deadline = time.monotonic() + START_S
        started = False
        while time.monotonic() < deadline:
            try:
                reader, writer = await asyncio.open_unix_connection(self._path)
            except OSError:
                if not started:
                    self._start_broker()
                    started = True
                await asyncio.sleep(_LOOK_S)
            else:
                if not is_ours(writer):
                    writer.close()
                    break
                self._conversation = Conversation(reader, writer, self._ssh, self._nodes)
                return
        self._no_broker = True

    def _start_broker(self) -> None:
        """Start one that outlives this command; it looks itself whether another is there."""
        argv = own_program("brctl.fanout.processes.broker", str(self._path))
        nothing = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
        with contextlib.suppress(OSError):
            os.posix_spawn(argv[0], argv, os.environ, file_actions=nothing, setsid=True)


def _login_settings(ssh: SshSettings) -> SshSettings:
    """The settings without what may differ from command to command over one connection."""
    return replace(ssh, fanout=LOGINS_AT_ONCE, shards=0, sudo="", transport="broker")
