"""Runs commands on this machine as child processes: for tests and `--local`."""

import asyncio
import contextlib
import os
import signal
import time
from asyncio.subprocess import PIPE, Process

from brctl.model.answer import Answer, Command, Outcome
from brctl.model.inventory import Node

_CHUNK_BYTES = 1 << 16


class _Bounded:
    """One output stream, kept up to a limit."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.kept = bytearray()
        self.over = False

    async def follow(self, stream: asyncio.StreamReader) -> None:
        """Read until the end, or until there is more than may be kept."""
        while not self.over and (chunk := await stream.read(_CHUNK_BYTES)):
            room = self._limit_bytes - len(self.kept)
            self.kept += chunk[:room]
            self.over = len(chunk) > room


class LocalTransport:
    """Every node is this machine; the command runs without a shell in its own process group."""

    def __init__(self) -> None:
        self._running: set[Process] = set()

    async def run(self, node: Node, command: Command) -> Answer:
        """Run one command here; see `Transport.run`."""
        started = time.perf_counter()
        out, err = _Bounded(command.output_limit_bytes), _Bounded(command.output_limit_bytes)
        exit_status, outcome, detail = await self._run(command, out, err)
        return Answer(
            node=node.name,
            outcome=outcome,
            exit_status=exit_status,
            stdout=bytes(out.kept),
            stderr=bytes(err.kept),
            seconds=time.perf_counter() - started,
            detail=detail,
        )

    async def close(self) -> None:
        """End the process groups of commands that still run."""
        for process in list(self._running):
            await self._end(process)

    async def _run(
        self, command: Command, out: _Bounded, err: _Bounded
    ) -> tuple[int | None, Outcome, str]:
        try:
            process = await asyncio.create_subprocess_exec(
                *command.argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
            )
        except OSError as exc:
            # What a login shell answers for a command it cannot start.
            err.kept += f"{command.argv[0]}: {exc.strerror}\n".encode()
            return 127, Outcome.ANSWERED, ""
        self._running.add(process)
        try:
            async with asyncio.timeout(command.deadline_s):
                ending = await self._follow(process, command, out, err)
        except TimeoutError:
            return None, Outcome.COMMAND_TIMED_OUT, f"no end within {command.deadline_s:g} s"
        else:
            if ending[1] is Outcome.ANSWERED:
                # What the command left in the background stays, as after a remote login.
                self._running.discard(process)
            return ending
        finally:
            if process in self._running:
                await self._end(process)

    async def _follow(
        self, process: Process, command: Command, out: _Bounded, err: _Bounded
    ) -> tuple[int | None, Outcome, str]:
        stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
        if stdin is None or stdout is None or stderr is None:
            raise AssertionError("pipes were asked for")
        feed = asyncio.create_task(_feed(stdin, command.stdin))
        readers = [
            asyncio.create_task(out.follow(stdout)),
            asyncio.create_task(err.follow(stderr)),
        ]
        try:
            await _until_ended(readers, out, err)
            if out.over or err.over:
                limit = command.output_limit_bytes
                return None, Outcome.OUTPUT_OVER_LIMIT, f"more than {limit} bytes of output"
            return _shell_status(await process.wait()), Outcome.ANSWERED, ""
        finally:
            for task in (feed, *readers):
                task.cancel()
            await asyncio.gather(feed, *readers, return_exceptions=True)

    async def _end(self, process: Process) -> None:
        self._running.discard(process)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _feed(stdin: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(data)
        await stdin.drain()
        stdin.close()


async def _until_ended(readers: list[asyncio.Task[None]], out: _Bounded, err: _Bounded) -> None:
    waiting: set[asyncio.Task[None]] = set(readers)
    while waiting and not (out.over or err.over):
        _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)


def _shell_status(returncode: int) -> int:
    """A death by signal n is 128 + n, as every remote shell reports it."""
    return returncode if returncode >= 0 else 128 - returncode
