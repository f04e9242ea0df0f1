"""One held connection a node: started, fed, listened to, and taken up again when it is cut."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from brctl.fanout.contract import Streams, Transport
from brctl.fanout.streaming import beside, run_streamed
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Node
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.report import CheckResult
from brctl.sweep.held_look import LOST_S, WORD_S, HeldLine, WholeLines, read_held_line

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
JITTER = 0.2
"""1,000 nodes that come back at once log in over a while, not in one second."""

WORD = b"\n"
NOTES = 10
RECONNECTING_TOLD = 50
FIRST_WORD_S = 30.0
"""A login that has said nothing for so long gives its turn to another node."""


@dataclass(slots=True)
class HeldNode:
    """What one node said, the newest of each check: nothing piles up while nobody reads.

    Attributes:
        fresh: Checks with an answer that nobody took yet.
        looks: How often each round was done, as of its last heartbeat.
        told: The look that each check's newest answer came with, in this connection.
        spoke_s: When it said something, by this machine's monotonic clock, later by whatever it
            has waited since for its turn to log in: that silence is ours.
        waiting_since_s: Since when it waits for its turn; None while it does not.
        not_askable: Who decides about it lets nobody ask it now, as Slurm without a job of ours
            there: it says nothing because of us, not of its health.
        stale: Nobody could ask it since it spoke last: what it said tells nothing of now.
        trouble: How its connection ended last; "" while it stands.
    """

    node: Node
    command: Command
    spoke_s: float
    waiting_since_s: float | None = None
    results: dict[str, CheckResult] = field(default_factory=dict)
    fresh: dict[str, CheckResult] = field(default_factory=dict)
    looks: Mapping[float, int] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)
    talking: bool = False
    not_askable: bool = False
    stale: bool = False
    trouble: str = ""
    notes: dict[str, None] = field(default_factory=dict)
    first_cpu: tuple[float, float] | None = None
    cpu_share: float | None = None
    reconnects: int = 0
    task: asyncio.Task[None] | None = None

    def silent_s(self, now_s: float) -> float:
        """How long it has said nothing though it could."""
        if self.not_askable:
            return 0.0
        until_s = now_s if self.waiting_since_s is None else self.waiting_since_s
        return until_s - self.spoke_s


class _ConnectionDead(Exception):  # noqa: N818 - an ending, told as one
    """Nothing comes through a connection any more."""


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
        silent = ((name, held.silent_s(now)) for name, held in self.nodes.items())
        return {name: seconds for name, seconds in silent if seconds > after_s}

    def waiting(self) -> frozenset[str]:
        """Nodes that nobody has asked yet, or again: others log in before them."""
        found = (n for n, held in self.nodes.items() if held.waiting_since_s is not None)
        return frozenset(found)

    def stale(self) -> frozenset[str]:
        """Nodes that nobody could ask since they spoke last: neither silent nor healthy."""
        return frozenset(name for name, held in self.nodes.items() if held.stale)

    def reconnecting(self) -> dict[str, str]:
        """Nodes without a connection now, and how it ended last; the first of many."""
        lost = ((name, held.trouble) for name, held in self.nodes.items() if not held.talking)
        return dict(islice(lost, RECONNECTING_TOLD))

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
            held.not_askable = ended.outcome is Outcome.NOT_AVAILABLE
            if held.not_askable:
                held.stale = True
                held.spoke_s = self._seconds()
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

        await self._wait_for_turn(held)
        turn = asyncio.ensure_future(self._turn_over(spoke))
        try:
            streams = Streams(lambda: _words(held.command.stdin), take, held=True)
            running = run_streamed(self._transport, held.node, held.command, streams)
            return await beside(self._end_when_silent(held, spoke), running)
        except _ConnectionDead:
            detail = f"nothing came for {LOST_S:g} s: taken for dead"
            return CommandResult(held.node.name, Outcome.DIED, None, b"", b"", LOST_S, detail)
        finally:
            spoke.set()
            await turn

    async def _end_when_silent(self, held: HeldNode, spoke: asyncio.Event) -> None:
        """A connection that is cut on its way stays open here, over some transports for ever.

        Raises:
            _ConnectionDead: It spoke once, and has had no heartbeat for so long that the program
                on the node, which heard nothing either, has ended.
        """
        await spoke.wait()
        while (left_s := LOST_S - (self._seconds() - held.spoke_s)) > 0:  # noqa: ASYNC110 - as often as it speaks it would be woken
            await asyncio.sleep(left_s)
        raise _ConnectionDead

    async def _wait_for_turn(self, held: HeldNode) -> None:
        from_s = held.waiting_since_s = self._seconds()
        try:
            await self._turns.acquire()
        finally:
            held.waiting_since_s = None
            held.spoke_s += self._seconds() - from_s

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
            held.talking, held.not_askable, held.stale, held.trouble = True, False, False, ""
            held.notes.clear()
            held.looks, held.first_cpu = {}, None
            held.told.clear()
        elif said.kind == "note":
            held.notes = {**held.notes, said.text: None} if len(held.notes) < NOTES else held.notes
        elif said.kind == "beat":
            held.looks = said.looks or {}
            if said.cpu_s is not None and said.up_s is not None:
                _share_of_cpu(held, said.cpu_s, said.up_s)
        elif said.result is not None:
            held.fresh[said.check] = said.result
            held.told[said.check] = said.look


def _share_of_cpu(held: HeldNode, cpu_s: float, up_s: float) -> None:
    """Since the second heartbeat: the start costs once, and looks for days."""
    if held.first_cpu is None:
        held.first_cpu = (cpu_s, up_s) if up_s >= 1.0 else None
    elif up_s - held.first_cpu[1] >= 1.0:
        held.cpu_share = (cpu_s - held.first_cpu[0]) / (up_s - held.first_cpu[1])


async def _words(first: bytes) -> AsyncIterator[bytes]:
    """The program, then a word now and then: where none comes, it ends."""
    yield first
    while True:
        await asyncio.sleep(WORD_S)
        yield WORD
