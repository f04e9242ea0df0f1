"""Runs commands on this machine as child processes: for tests and `--local`."""

import asyncio
import contextlib
import os
import signal
import time

from brctl.fanout.contract import Streams
from brctl.fanout.streaming import beside, feed_pipe
from brctl.library.programs.child_start import start_child
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Node

STDERR = 2
_REAP_S = 2.0
"""SIGKILL acts at once unless the process hangs in the kernel; then it is left to init."""


class _Child(asyncio.SubprocessProtocol):
    """One process's bounded output; `ended` is set when nothing more comes."""

    def __init__(self, limit_bytes: int, streams: Streams | None) -> None:
        self._room = {1: limit_bytes, 2: limit_bytes}
        self._on_output = streams.on_output if streams else None
        self.kept = {1: bytearray(), 2: bytearray()}
        self.writable = asyncio.Event()
        self.writable.set()
        self.over_limit = False
        self.ended = asyncio.Event()
        self.exited = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        taken = data[: self._room[fd]]
        self._room[fd] -= len(taken)
        if self._on_output is not None:
            self._on_output(taken, fd == STDERR)
        else:
            self.kept[fd] += taken
        if len(data) > len(taken):
            self.over_limit = True
            self.ended.set()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


class LocalTransport:
    """Every node is this machine; the command runs without a shell in its own process group."""

    def __init__(self) -> None:
        self._running: dict[asyncio.SubprocessTransport, _Child] = {}

    async def run(self, node: Node, command: Command) -> CommandResult:
        """Run one command here; see `Transport.run`."""
        return await self._ask(node, command, None)

    async def stream(self, node: Node, command: Command, streams: Streams) -> CommandResult:
        """Run a command and pass on what comes and goes; see `Streaming.stream`."""
        return await self._ask(node, command, streams)

    async def _ask(self, node: Node, command: Command, streams: Streams | None) -> CommandResult:
        started = time.perf_counter()
        child = _Child(command.output_limit_bytes, streams)
        exit_status, outcome, detail = await self._run(command, child, streams)
        return CommandResult(
            node=node.name,
            outcome=outcome,
            exit_status=exit_status,
            stdout=bytes(child.kept[1]),
            stderr=bytes(child.kept[2]),
            seconds=time.perf_counter() - started,
            detail=detail,
        )

    async def close(self) -> None:
        """End the process groups of commands that still run."""
        for transport in list(self._running):
            await self._end(transport)

    async def _run(
        self, command: Command, child: _Child, streams: Streams | None
    ) -> tuple[int | None, Outcome, str]:
        loop = asyncio.get_running_loop()
        try:
            transport = await start_child(
                loop.subprocess_exec(lambda: child, *command.argv, start_new_session=True)
            )
        except OSError as exc:
            # What a login shell answers for a command it cannot start.
            child.kept[2] += f"{command.argv[0]}: {exc.strerror}\n".encode()
            return 127, Outcome.ANSWERED, ""
        self._running[transport] = child
        try:
            ending = self._follow(transport, command, child)
            stdin = transport.get_pipe_transport(0)
            if not isinstance(stdin, asyncio.WriteTransport):
                return await ending
            if streams is not None:
                return await beside(feed_pipe(stdin, child.writable, streams.stdin()), ending)
            stdin.write(command.stdin)
            stdin.close()
            return await ending
        finally:
            await self._end(transport)

    async def _follow(
        self, transport: asyncio.SubprocessTransport, command: Command, child: _Child
    ) -> tuple[int | None, Outcome, str]:
        try:
            async with asyncio.timeout(command.deadline_s):
                await child.ended.wait()
        except TimeoutError:
            return None, Outcome.COMMAND_TIMED_OUT, f"no end within {command.deadline_s:g} s"
        if child.over_limit:
            limit = command.output_limit_bytes
            return None, Outcome.OUTPUT_OVER_LIMIT, f"more than {limit} bytes of output"
        # What the command left in the background stays, as after a remote login.
        del self._running[transport]
        return _shell_status(transport.get_returncode() or 0), Outcome.ANSWERED, ""

    async def _end(self, transport: asyncio.SubprocessTransport) -> None:
        child = self._running.pop(transport, None)
        if child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(transport.get_pid(), signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_REAP_S):
                    await child.exited.wait()
        transport.close()


def _shell_status(returncode: int) -> int:
    """A death by signal n is 128 + n, as every remote shell reports it."""
    return returncode if returncode >= 0 else 128 - returncode
