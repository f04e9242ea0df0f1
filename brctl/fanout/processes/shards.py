"""Processes that share a fan-out, each with its own event loop and connections."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import time
import zlib
from collections.abc import Mapping, Sequence

from brctl.fanout.conversation import Conversation, ConversationEndedError
from brctl.library.config import SshSettings
from brctl.library.own_program import own_program
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Node

MOST = 8
"""The process that hands out the work has a share of it itself: more than this do not pay."""

_END_S = 2.0
_LOOK_S = 0.02


class Shard:
    """One process and the conversation with it.

    Args:
        place: `2 of 4`, for people.
    """

    def __init__(self, socket_path: str, keep: int) -> None:
        self._socket_path = socket_path
        self._parent_end, child_end = socket.socketpair()
        with child_end:
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                own_program("brctl.fanout.processes.shard", str(keep)),
                stdin=child_end.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        self._opening = asyncio.Lock()
        self._conversation: Conversation | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it can be asked nothing more."""
        return self._conversation is not None and self._conversation.ended

    async def run(
        self, node: Node, command: Command, ssh: SshSettings, nodes: Mapping[str, Node]
    ) -> CommandResult:
        """The shard's answer; the node is not to blame when the shard dies."""
        started = time.perf_counter()
        async with self._opening:
            if self._conversation is None:
                streams = await asyncio.open_unix_connection(sock=self._parent_end)
                self._conversation = Conversation(*streams, ssh, nodes)
        try:
            return await self._conversation.ask(node, command)
        except ConversationEndedError:
            seconds = time.perf_counter() - started
            return CommandResult(
                node.name, Outcome.DIED, None, b"", b"", seconds, await self._why()
            )

    async def close(self) -> None:
        """Hang up, wait for it to end, and kill it when it does not."""
        if self._conversation is not None:
            await self._conversation.close()
        self._parent_end.close()
        with contextlib.suppress(TimeoutError):
            await self._wait()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    async def _why(self) -> str:
        with contextlib.suppress(TimeoutError):
            await self._wait()
        status = self._process.poll()
        how = f"exit status {status}"
        if status is not None and status < 0:
            how = f"killed by {signal.Signals(-status).name}"
        return (
            f"this machine, not the node: fan-out process {self._socket_path} ended ({how})"
            " before the node answered"
        )

    async def _wait(self) -> None:
        async with asyncio.timeout(_END_S):
            while self._process.poll() is None:  # noqa: ASYNC110 - a child has no event to wait on
                await asyncio.sleep(_LOOK_S)


def start_shards(count: int, keep: int) -> Sequence[Shard]:
    """So many processes, started at once."""
    return [Shard(f"{number} of {count}", keep) for number in range(1, count + 1)]


def shard_count(ssh: SshSettings) -> int:
    """How many processes the settings mean."""
    return ssh.shards or min(len(os.sched_getaffinity(0)), MOST)


def shard_of(node: Node, shards: Sequence[Shard]) -> Shard | None:
    """The shard that asks a node; nodes behind one jump host share one, as its connection does."""
    living = [shard for shard in shards if not shard.ended]
    if not living:
        return None
    return living[zlib.crc32((node.via or node.name).encode()) % len(living)]
