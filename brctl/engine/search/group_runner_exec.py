"""A site's own group test: one program, started once, one JSON line a round each way."""

import asyncio
import contextlib
import json
import os
import shlex
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field

from brctl.engine.search.group_runner import (
    RoundMeasurement,
    RoundOrder,
    nothing_measured,
    read_results,
)
from brctl.library.programs.child_start import end_process, start_process
from brctl.model.errors import UnavailableError, UsageError
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json

_LINE_LIMIT = 16 << 20
_OUTPUT_TAIL = 2000
_PATIENCE_S = 2.0


@dataclass(slots=True)
class ExecRunner:
    """Talks to the program; any breach of the protocol ends it, because answers could be late.

    Attributes:
        argv: Program and arguments; no shell reads them.
    """

    argv: tuple[str, ...]
    process: asyncio.subprocess.Process | None = None
    broken: str = ""
    output_tail: bytearray = field(default_factory=bytearray)
    listener: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return "exec"

    async def run(self, order: RoundOrder) -> RoundMeasurement:
        """Ask for one round; silence beyond the deadline is a breach."""
        if self.broken:
            return nothing_measured(order, self.broken)
        process = await self._start()
        try:
            line = await asyncio.wait_for(self._ask(process, order), order.deadline_s)
        except TimeoutError:
            return await self._break(order, f"no answer within {order.deadline_s:.0f} s")
        except ValueError:
            return await self._break(order, f"a line longer than {_LINE_LIMIT >> 20} MiB")
        except (BrokenPipeError, ConnectionResetError):
            line = b""
        if not line.endswith(b"\n"):
            return await self._break(order, await self._how_it_ended(process))
        return await self._read(order, line)

    async def _start(self) -> asyncio.subprocess.Process:
        if self.process is None:
            try:
                self.process = await start_process(
                    asyncio.create_subprocess_exec(
                        *self.argv,
                        stdin=asyncio.subprocess.PIPE,
                        stdout=asyncio.subprocess.PIPE,
                        stderr=asyncio.subprocess.PIPE,
                        limit=_LINE_LIMIT,
                        start_new_session=True,
                    )
                )
            except OSError as exc:
                raise UnavailableError(f"exec:{shlex.join(self.argv)}: {exc.strerror}") from exc
            self.listener = asyncio.create_task(self._listen(self.process))
        return self.process

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        """Keep the end of what the program says on stderr, and never let it block on it."""
        if process.stderr is None:
            return
        while chunk := await process.stderr.read(1 << 16):
            self.output_tail += chunk
            del self.output_tail[:-_OUTPUT_TAIL]

    async def _ask(self, process: asyncio.subprocess.Process, order: RoundOrder) -> bytes:
        if process.stdin is None or process.stdout is None:
            return b""
        question = {
            "round": order.number,
            "op": order.op,
            "size_bytes": order.size_bytes,
            "reps": order.reps,
            "groups": order.groups,
        }
        process.stdin.write(json.dumps(question).encode() + b"\n")
        await process.stdin.drain()
        return await process.stdout.readline()

    async def _read(self, order: RoundOrder, line: bytes) -> RoundMeasurement:
        try:
            answer = read_foreign_json(line)
        except ForeignJsonError:
            return await self._break(order, f"not one JSON line: {line[:80]!r}")
        if not isinstance(answer, dict) or not isinstance(answer.get("results"), list):
            return await self._break(order, "the answer has no list `results`")
        if answer.get("round", order.number) != order.number:
            return await self._break(order, "the answer is to another round")
        rows = answer["results"]
        if len(rows) != len(order.groups):
            return await self._break(order, f"{len(rows)} results for {len(order.groups)} groups")
        results, notes = read_results(rows, order.reps)
        return RoundMeasurement(results, notes=tuple(notes))

    async def _break(self, order: RoundOrder, why: str) -> RoundMeasurement:
        self.broken = f"exec:{os.path.basename(self.argv[0])}: {why}"
        await self.close()
        return nothing_measured(order, self.broken)

    async def _how_it_ended(self, process: asyncio.subprocess.Process) -> str:
        """How the program ended, with the end of what it said."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _PATIENCE_S)
        lines = self.output_tail.decode(errors="replace").strip().splitlines()
        ending = f": {lines[-1][:200]}" if lines else ""
        return f"ended with status {process.returncode} before it answered{ending}"

    async def close(self) -> None:
        """End the program: end of input, then SIGTERM, then SIGKILL to its process group."""
        process, self.process = self.process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        for number in (None, signal.SIGTERM):
            if number is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _PATIENCE_S)
                break
        # What the program started may hold its group, even when it has ended itself.
        await end_process(process)
        if self.listener is not None:
            self.listener.cancel()
            await asyncio.gather(self.listener, return_exceptions=True)


def exec_runner(command: str) -> ExecRunner:
    """The runner of `exec:COMMAND`, split as a shell splits words.

    Raises:
        UsageError: The command is empty or its quotes do not match.
    """
    try:
        argv: Sequence[str] = shlex.split(command)
    except ValueError as exc:
        raise UsageError(f"exec:{command}: {exc}") from exc
    if not argv:
        raise UsageError("exec: needs a command, exec:'./group-test --fast'")
    return ExecRunner(tuple(argv))
