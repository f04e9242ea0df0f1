"""One held connection a node: started, fed, listened to, and taken up again when it is cut."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

from brctl.fanout.contract import Streams, Transport
from brctl.fanout.streaming import run_streamed
from brctl.model.command import Command, CommandResult
from brctl.model.inventory import Node
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.report import CheckResult
from brctl.sweep.held_look import WORD_S, HeldLine, WholeLines, read_held_line

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
JITTER = 0.2
"""1,000 nodes that come back at once log in over a while, not in one second."""

WORD = b"\n"
NOTES = 10
FIRST_WORD_S = 30.0
"""A login that has said nothing for so long gives its turn to another node."""


@dataclass(slots=True)
class HeldNode:
    """What one node said, the newest of each check: nothing piles up while nobody reads.

    Attributes:
        fresh: Checks with an answer that nobody took yet.
        looks: How often each round was done, as of its last heartbeat.
        told: The look that each check's newest answer came with, in this connection.
        spoke_s: When it said something, by this machine's monotonic clock.
        trouble: How its connection ended last; "" while it stands.
    """

    node: Node
    command: Command
    spoke_s: float
    results: dict[str, CheckResult] = field(default_factory=dict)
    fresh: dict[str, CheckResult] = field(default_factory=dict)
    looks: Mapping[float, int] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)
    talking: bool = False
    trouble: str = ""
    notes: dict[str, None] = field(default_factory=dict)
    cpu_share: float | None = None
    reconnects: int = 0
    task: asyncio.Task[None] | None = None


class HeldNodes:
    """Keeps looking at nodes until it is closed.

    Args:
        transport: How nodes are reached.
        checks: What they are asked.
        logins: Nodes that log in at once.
        seconds: A monotonic clock.
        chance: Numbers from 0 to 1, for the jitter.
    """

    def __init__(
        self,
        transport: Transport,
        checks: Mapping[str, Check],
        logins: int,
        seconds: Callable[[], float],
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._transport, self._checks = transport, checks
        self._turns = asyncio.Semaphore(logins)
        self._seconds, self._chance = seconds, chance
        self.nodes: dict[str, HeldNode] = {}

    def hold(self, wanted: Mapping[str, tuple[Node, Command]]) -> None:
        """Look at these nodes and no others; one whose command changed is started anew."""
        for name in [name for name in self.nodes if name not in wanted]:
            self._let_go(name)
        for name, (node, command) in wanted.items():
            held = self.nodes.get(name)
            if held is not None and held.command == command:
                continue
            if held is not None:
                self._let_go(name)
            self.nodes[name] = fresh = HeldNode(node, command, self._seconds())
            fresh.task = asyncio.ensure_future(self._keep(fresh))

    async def close(self) -> None:
        """End all; the programs end with their input."""
        tasks = [held.task for held in self.nodes.values() if held.task]
        for name in list(self.nodes):
            self._let_go(name)
        await asyncio.gather(*tasks, return_exceptions=True)

    def silent_s(self, after_s: float) -> dict[str, float]:
        """Nodes that have said nothing for longer than this, and for how long."""
        now = self._seconds()
        return {
            name: now - held.spoke_s
            for name, held in self.nodes.items()
            if now - held.spoke_s > after_s
        }

    def _let_go(self, name: str) -> None:
        task = self.nodes.pop(name).task
        if task is not None:
            task.cancel()

    async def _keep(self, held: HeldNode) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            ended = await self._once(held)
            pause_s = FIRST_PAUSE_S if held.talking else min(2 * pause_s, LONGEST_PAUSE_S)
            held.talking, held.reconnects = False, held.reconnects + 1
            held.trouble = ended.detail or f"{ended.outcome.value} (exit {ended.exit_status})"
            await asyncio.sleep(pause_s * (1 + JITTER * (2 * self._chance() - 1)))

    async def _once(self, held: HeldNode) -> CommandResult:
        """One connection, from login to its end."""
        lines, spoke = WholeLines(), asyncio.Event()

        def take(piece: bytes, is_stderr: bool) -> None:
            if is_stderr:
                return
            for line in lines.take(piece):
                said = read_held_line(line, self._checks)
                if said is not None:
                    spoke.set()
                    self._take(held, said)

        await self._turns.acquire()
        turn = asyncio.ensure_future(self._turn_over(spoke))
        try:
            streams = Streams(lambda: _words(held.command.stdin), take)
            return await run_streamed(self._transport, held.node, held.command, streams)
        finally:
            spoke.set()
            await turn

    async def _turn_over(self, spoke: asyncio.Event) -> None:
        """Give the turn to another node once this one speaks, or takes too long."""
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FIRST_WORD_S):
                    await spoke.wait()
        finally:
            self._turns.release()

    def _take(self, held: HeldNode, said: HeldLine) -> None:
        held.spoke_s = self._seconds()
        if said.kind == "hello":
            held.talking, held.trouble = True, ""
            held.notes.clear()
            held.looks = {}
            held.told.clear()
        elif said.kind == "note":
            held.notes = {**held.notes, said.text: None} if len(held.notes) < NOTES else held.notes
        elif said.kind == "beat":
            held.looks = said.looks or {}
            if said.cpu_s is not None and said.up_s is not None and said.up_s >= 1.0:
                held.cpu_share = said.cpu_s / said.up_s
        elif said.result is not None:
            held.fresh[said.check] = said.result
            held.told[said.check] = said.look


async def _words(first: bytes) -> AsyncIterator[bytes]:
    """The program, then a word now and then: where none comes, it ends."""
    yield first
    while True:
        await asyncio.sleep(WORD_S)
        yield WORD
