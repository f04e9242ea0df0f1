"""How many logins are under way at once, and deadlines that measure the node and not ourselves.

A controller that is short of CPU reads an answer long after it came. Healthy nodes would then time
out at login because of our own queue. Two measures of it: how late the event loop's own alarm
rings (lag), and how long logins take that work. Both lower the number of logins under way; the lag
also moves the deadlines of those that are waiting.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

LEAST = 8
"""Logins under way when everything is slow; a few mute nodes must not hold up the rest."""

_TICK_S = 0.05
_ON_TIME_S = 0.02
_LATE_S = 0.15
"""An alarm this late means that the loop has more work than time."""

_SHRINK, _SHRINK_EVERY_S = 0.7, 0.5
_SLOW_SHARE, _QUICK_SHARE = 0.25, 0.125
"""Of the login deadline: a login that takes longer shrinks the number, a quicker one grows it."""


class Pace:
    """Lets so many logins through as this machine and the nodes bear.

    Args:
        most: Logins at once when nothing is slow.
        deadline_s: The login deadline, as the measure of what is slow.
    """

    def __init__(self, most: int, deadline_s: float) -> None:
        self._most = float(max(most, 1))
        self._least = float(min(LEAST, max(most, 1)))
        self._deadline_s = deadline_s
        self._allowed = self._most
        self._under_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._deadlines: set[asyncio.Timeout] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._due_at = 0.0
        self._shrunk_at = float("-inf")

    @property
    def allowed(self) -> int:
        """How many logins may be under way now."""
        return int(self._allowed)

    def shrunk_since(self, moment: float) -> bool:
        """Whether everything was slow at some time since then (the loop's clock)."""
        return self._shrunk_at >= moment

    @asynccontextmanager
    async def login(self) -> AsyncIterator[None]:
        """One login: waits for its turn, then runs under the deadline; TimeoutError past it."""
        await self._wait_for_turn()
        self._under_way += 1
        started_at = asyncio.get_running_loop().time()
        try:
            async with self.deadline(self._deadline_s):
                yield
            self._learn(asyncio.get_running_loop().time() - started_at)
        finally:
            self._under_way -= 1
            self._wake()

    @asynccontextmanager
    async def deadline(self, limit_s: float) -> AsyncIterator[None]:
        """A limit in seconds of a loop that is on time; the loop's own delays come on top."""
        async with asyncio.timeout(limit_s) as running:
            self._deadlines.add(running)
            self._wind()
            try:
                yield
            finally:
                self._deadlines.discard(running)

    async def _wait_for_turn(self) -> None:
        while self._under_way >= self.allowed:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._wake()  # the turn may have been ours already
                raise

    def _wake(self) -> None:
        free = self.allowed - self._under_way
        while self._waiting and free > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1

    def _learn(self, seconds: float) -> None:
        if seconds > self._deadline_s * _SLOW_SHARE:
            self._shrink()
        elif seconds < self._deadline_s * _QUICK_SHARE:
            self._allowed = min(self._most, self._allowed + 2 / self._allowed)

    def _shrink(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._shrunk_at >= _SHRINK_EVERY_S:
            self._shrunk_at = now
            self._allowed = max(self._least, self._allowed * _SHRINK)

    def _wind(self) -> None:
        """Set the alarm; there is none while nothing waits."""
        if self._alarm is None and self._deadlines:
            loop = asyncio.get_running_loop()
            self._due_at = loop.time() + _TICK_S
            self._alarm = loop.call_at(self._due_at, self._ring)

    def _ring(self) -> None:
        late_s = asyncio.get_running_loop().time() - self._due_at
        if late_s > _LATE_S:
            self._shrink()
        # Those due in this very turn stand behind the alarm, which was due before them.
        for running in self._deadlines if late_s > _ON_TIME_S else ():
            when = running.when()
            if when is not None and not running.expired():
                running.reschedule(when + late_s)
        self._alarm = None
        self._wind()
