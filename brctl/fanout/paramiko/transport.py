"""Paramiko as transport, for sites whose SSH set-up asyncssh does not speak; a thread a node."""

import asyncio
import shlex
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import paramiko

from brctl.fanout.contract import LoginFailedError
from brctl.fanout.paramiko.login import log_in
from brctl.library.config import SshSettings
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Node

_POLL_S = 0.02
_CHUNK_BYTES = 1 << 15


class _Execution:
    """One command on one channel, followed by a thread; `stop` ends it from outside."""

    def __init__(self, client: paramiko.SSHClient, command: Command) -> None:
        self._command = command
        self._client = client
        self._stop = threading.Event()
        self._unsent = memoryview(command.stdin)
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.exit_status: int | None = None

    def stop(self) -> None:
        """End the command's channel at the next look."""
        self._stop.set()

    def follow(self, login_timeout_s: float) -> tuple[Outcome, str]:
        """Run to the end, to the deadline, or until there is too much output."""
        try:
            channel = _transport_of(self._client).open_session(timeout=login_timeout_s)
            channel.exec_command(shlex.join(self._command.argv))
        except (paramiko.SSHException, OSError, EOFError) as exc:
            return Outcome.DIED, f"no session: {exc}"
        deadline = time.monotonic() + self._command.deadline_s
        try:
            return self._until_ended(channel, deadline)
        except (paramiko.SSHException, OSError, EOFError) as exc:
            return Outcome.DIED, f"gone before the command ended: {exc}"
        finally:
            channel.close()

    def _until_ended(self, channel: paramiko.Channel, deadline: float) -> tuple[Outcome, str]:
        limit = self._command.output_limit_bytes
        while time.monotonic() < deadline and not self._stop.is_set():
            moved = self._send(channel) | self._receive(channel)
            if max(len(self.stdout), len(self.stderr)) > limit:
                del self.stdout[limit:], self.stderr[limit:]
                return Outcome.OUTPUT_OVER_LIMIT, f"more than {limit} bytes of output"
            ended = channel.exit_status_ready() or channel.closed
            if ended and not moved and (channel.eof_received or channel.closed):
                return self._ending(channel)
            if not moved:
                time.sleep(_POLL_S)
        return Outcome.COMMAND_TIMED_OUT, f"no end within {self._command.deadline_s:g} s"

    def _ending(self, channel: paramiko.Channel) -> tuple[Outcome, str]:
        # -1 is paramiko's word for a channel that ended without a status.
        status = channel.exit_status
        if status < 0:
            return Outcome.DIED, "gone before the command ended: connection closed"
        self.exit_status = status
        return Outcome.ANSWERED, ""

    def _send(self, channel: paramiko.Channel) -> bool:
        if channel.send_ready() and len(self._unsent):
            sent = channel.send(bytes(self._unsent[:_CHUNK_BYTES]))
            self._unsent = self._unsent[sent:]
            if sent and len(self._unsent):
                return True
        if not len(self._unsent) and not channel.eof_sent:
            channel.shutdown_write()
        return False

    def _receive(self, channel: paramiko.Channel) -> bool:
        moved = False
        if channel.recv_ready():
            self.stdout += channel.recv(_CHUNK_BYTES)
            moved = True
        if channel.recv_stderr_ready():
            self.stderr += channel.recv_stderr(_CHUNK_BYTES)
            moved = True
        return moved


def _transport_of(client: paramiko.SSHClient) -> paramiko.Transport:
    transport = client.get_transport()
    if transport is None:
        raise paramiko.SSHException("not connected")
    return transport


class ParamikoTransport:
    """Runs commands over SSH with paramiko; every node keeps one connection until `close`."""

    def __init__(self, ssh: SshSettings) -> None:
        self._ssh = ssh
        self._clients: dict[str, paramiko.SSHClient] = {}
        self._threads = ThreadPoolExecutor(ssh.fanout, thread_name_prefix="brctl-ssh")

    async def run(self, node: Node, command: Command) -> CommandResult:
        """Run one command on one node; see `Transport.run`."""
        started = time.perf_counter()
        loop = asyncio.get_running_loop()
        try:
            client = await loop.run_in_executor(self._threads, self._client, node)
        except LoginFailedError as failed:
            seconds = time.perf_counter() - started
            return CommandResult(node.name, failed.outcome, None, b"", b"", seconds, failed.detail)
        execution = _Execution(client, command)
        try:
            outcome, detail = await loop.run_in_executor(
                self._threads, execution.follow, self._ssh.login_timeout_s
            )
        finally:
            execution.stop()
        if outcome is not Outcome.ANSWERED:
            self._clients.pop(node.name, client).close()
        return CommandResult(
            node=node.name,
            outcome=outcome,
            exit_status=execution.exit_status,
            stdout=bytes(execution.stdout),
            stderr=bytes(execution.stderr),
            seconds=time.perf_counter() - started,
            detail=detail,
        )

    async def close(self) -> None:
        """Close every connection and end the threads."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)

    def _client(self, node: Node) -> paramiko.SSHClient:
        kept = self._clients.get(node.name)
        transport = kept.get_transport() if kept else None
        if kept is not None and transport is not None and transport.is_active():
            return kept
        client = log_in(node, self._ssh)
        self._clients[node.name] = client
        return client
