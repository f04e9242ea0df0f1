"""A `brctl` that has read its whole program before there is a verdict, and waits for its words.

Reading it takes a second of a busy machine, which a stopped job need not wait for. It knows nothing
and does nothing: what it is given is the command line of `fix`, with every check that has.
"""

import asyncio
import json
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from contextlib import suppress

from brctl.engine.application.watching.contract import Attempt
from brctl.library.own_program import own_program
from brctl.library.programs.child_start import end_process, start_process
from brctl.model.exit_codes import ExitCode

SAID_LIMIT = 400
FIX_STARTS_S = 120.0
"""`fix --detach` plans, asks its guards and returns; the run goes on without it."""

ENDS_S = 5.0
"""What waits for its words ends with its stdin; one that hangs on a file system does not."""

RUN_EXISTS = frozenset(
    {ExitCode.OK, ExitCode.UNKNOWN, ExitCode.WAITING, ExitCode.ROLLED_BACK, ExitCode.NEEDS_HUMAN}
)
"""How `fix --detach` ends where there is a run, which tells of itself; unknown: it goes on."""

WAITING: Sequence[str] = own_program("brctl", "__wait")


class WaitingFix:
    """At most one process; it ends with its stdin, and so with the watcher."""

    def __init__(self, program: Sequence[str] = WAITING) -> None:
        self._program = program
        self._process: Process | None = None
        self._preparing = asyncio.Lock()

    async def prepare(self) -> None:
        """Have one; where none can be started, `run` will say so."""
        # Two diagnoses that begin at once ask for it at once.
        async with self._preparing:
            if self._process is None or self._process.returncode is not None:
                with suppress(OSError):
                    self._process = await self._start()

    async def run(self, words: Sequence[str]) -> Attempt:
        """Give it the words of `fix --detach`, and whether there is a run now."""
        process, self._process = self._process, None
        line = json.dumps(list(words)).encode() + b"\n"
        try:
            if process is None or process.returncode is not None:
                process = await self._start()
            async with asyncio.timeout(FIX_STARTS_S):
                _, said = await process.communicate(line)
        except TimeoutError:
            text = f"still starting after {FIX_STARTS_S:.0f} s; see brctl runs"
            return Attempt(done=False, text=text)
        except OSError as error:
            return Attempt(done=False, text=f"cannot be started: {error}")
        text = " | ".join(said.decode("utf-8", "replace").split("\n"))[:SAID_LIMIT]
        return Attempt(process.returncode in RUN_EXISTS, f"exit {process.returncode}: {text}")

    async def close(self) -> None:
        """End it, if nobody needed it."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        try:
            async with asyncio.timeout(ENDS_S):
                await process.communicate(b"")
        except TimeoutError:
            await end_process(process)

    async def _start(self) -> Process:
        return await start_process(
            asyncio.create_subprocess_exec(
                *self._program, stdin=PIPE, stdout=DEVNULL, stderr=PIPE, start_new_session=True
            )
        )
