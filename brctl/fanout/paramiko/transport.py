"""Paramiko as transport, for sites whose SSH set-up asyncssh does not speak; a thread a node."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import paramiko

from brctl.fanout.contract import LoginFailedError, Streams
from brctl.fanout.paramiko.execution import Execution
from brctl.fanout.paramiko.login import log_in
from brctl.fanout.streaming import beside
from brctl.library.config import SshSettings
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Node

_LOOK_S = 1.0
_MOST_HELD = 1 << 14
"""Threads for commands that are held, which come and go as these do; the others share `fanout`."""


class _Running:
    """One command between its thread and the event loop."""

    def __init__(self, client: paramiko.SSHClient, command: Command, streams: Streams) -> None:
        self._loop = asyncio.get_running_loop()
        self._streams = streams
        self._room = asyncio.Event()
        self.kept = {False: bytearray(), True: bytearray()}
        self.execution = Execution(client, command, self._take, self._sent)

    async def feed(self) -> None:
        """Its input, no faster than the node takes it."""
        async for piece in self._streams.stdin():
            if piece:
                self._room.clear()
                self.execution.send(piece)
                await self._room.wait()
        self.execution.end_input()

    def _sent(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and waits for nothing
            self._loop.call_soon_threadsafe(self._room.set)

    def _take(self, piece: bytes, is_stderr: bool) -> None:
        if self._streams.on_output is None:
            self.kept[is_stderr] += piece
            return
        taken = threading.Event()
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._hand_over, piece, is_stderr, taken)
            # A loop that is busy holds up the node, and does not let its output pile up here.
            while not taken.wait(_LOOK_S) and not self.execution.stopped:
                pass

    def _hand_over(self, piece: bytes, is_stderr: bool, taken: threading.Event) -> None:
        if self._streams.on_output is not None and not self.execution.stopped:
            self._streams.on_output(piece, is_stderr)
        taken.set()


class ParamikoTransport:
    """Runs commands over SSH with paramiko; every node keeps one connection until `close`.

    A command that is held has its own, which no other command's failure closes.
    """

    def __init__(self, ssh: SshSettings) -> None:
        self._ssh = ssh
        self._clients: dict[str, paramiko.SSHClient] = {}
        self._logins: dict[str, threading.Lock] = {}
        self._held_clients: set[paramiko.SSHClient] = set()
        self._threads = ThreadPoolExecutor(ssh.fanout, thread_name_prefix="brctl-ssh")
        self._held = ThreadPoolExecutor(_MOST_HELD, thread_name_prefix="brctl-ssh-held")

    async def run(self, node: Node, command: Command) -> CommandResult:
        """Run one command on one node; see `Transport.run`."""

        async def whole() -> AsyncIterator[bytes]:
            yield command.stdin

        return await self.stream(node, command, Streams(whole))

    async def stream(self, node: Node, command: Command, streams: Streams) -> CommandResult:
        """Run a command and pass on what comes and goes; see `Streaming.stream`."""
        started = time.perf_counter()
        loop = asyncio.get_running_loop()
        try:
            log_in_there = self._held_client if streams.held else self._client
            client = await loop.run_in_executor(self._threads, log_in_there, node)
        except LoginFailedError as failed:
            seconds = time.perf_counter() - started
            return CommandResult(node.name, failed.outcome, None, b"", b"", seconds, failed.detail)
        running = _Running(client, command, streams)
        threads = self._held if streams.held else self._threads
        try:
            following = loop.run_in_executor(threads, self._follow, running, client)
            outcome, detail = await beside(running.feed(), following)
        finally:
            running.execution.stop()
        if outcome is not Outcome.ANSWERED:
            # Closed, it is replaced at the next command; by now that may have happened.
            client.close()
        return CommandResult(
            node=node.name,
            outcome=outcome,
            exit_status=running.execution.exit_status,
            stdout=bytes(running.kept[False]),
            stderr=bytes(running.kept[True]),
            seconds=time.perf_counter() - started,
            detail=detail,
        )

    async def close(self) -> None:
        """Close every connection and end the threads."""
        for client in (*self._clients.values(), *self._held_clients):
            client.close()
        self._clients.clear()
        for threads in (self._threads, self._held):
            await asyncio.to_thread(threads.shutdown, cancel_futures=True)

    def _follow(self, running: _Running, client: paramiko.SSHClient) -> tuple[Outcome, str]:
        try:
            return running.execution.follow(self._ssh.login_timeout_s)
        finally:
            if client in self._held_clients:
                self._held_clients.discard(client)
                client.close()

    def _held_client(self, node: Node) -> paramiko.SSHClient:
        client = log_in(node, self._ssh)
        self._held_clients.add(client)
        return client

    def _client(self, node: Node) -> paramiko.SSHClient:
        # Two commands that begin at once log in once.
        with self._logins.setdefault(node.name, threading.Lock()):
            kept = self._clients.get(node.name)
            transport = kept.get_transport() if kept else None
            if kept is None or transport is None or not transport.is_active():
                kept = self._clients[node.name] = log_in(node, self._ssh)
            return kept
