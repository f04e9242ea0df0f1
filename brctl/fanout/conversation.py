"""Asking another process of ours to run commands: many questions at once over one stream."""

import asyncio
from collections.abc import Mapping

from brctl.fanout.processes.broker_wire import (
    BrokerReply,
    BrokerRequest,
    pack_settings,
    read_reply,
    send,
)
from brctl.library.config import SshSettings
from brctl.model.command import Command, CommandResult
from brctl.model.errors import ConfigError
from brctl.model.inventory import Node


class ConversationEndedError(Exception):
    """The other process is gone; what it was asked has no answer."""


class Conversation:
    """One end of a stream to a process that fans out.

    Args:
        ssh: Settings of all questions.
        nodes: The inventory, for nodes that others jump through.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        ssh: SshSettings,
        nodes: Mapping[str, Node],
    ) -> None:
        self._writer = writer
        self._ssh = pack_settings(ssh)
        self._nodes = nodes
        self._waiting: dict[int, asyncio.Future[CommandResult]] = {}
        self._count = 0
        self.ended = False
        self._listening = asyncio.create_task(self._listen(reader))

    async def ask(self, node: Node, command: Command) -> CommandResult:
        """The other process's answer.

        Raises:
            ConversationEndedError: It went away before it answered.
            ConfigError: Our settings allow no connection at all.
        """
        self._count += 1
        number = self._count
        answer: asyncio.Future[CommandResult] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            if self.ended:
                raise ConversationEndedError
            send(self._writer, BrokerRequest(number, self._ssh, node, self._jumps(node), command))
            await self._writer.drain()
            return await answer
        except ConnectionError as exc:
            raise ConversationEndedError from exc
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """Hang up; the other process cancels what it still runs for us."""
        self._writer.close()
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    def _jumps(self, node: Node) -> list[Node]:
        found: dict[str, Node] = {}
        while node.via in self._nodes and node.via not in found:
            node = found[node.via] = self._nodes[node.via]
        return list(found.values())

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                self._settle(await read_reply(reader))
        except (asyncio.IncompleteReadError, ValueError, OSError):
            self.ended = True
            self._writer.close()
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(ConversationEndedError())

    def _settle(self, reply: BrokerReply) -> None:
        waiting = self._waiting.get(reply.number)
        if waiting is None or waiting.done():
            return
        if reply.answer is not None:
            waiting.set_result(reply.answer)
        else:
            waiting.set_exception(ConfigError(reply.error, hint=reply.hint or None))
