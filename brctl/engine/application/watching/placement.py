"""Where jobs run, asked again and again beside the watcher's loop.

A scheduler that is slow or gone holds up no tick, and so costs the watcher neither its lead nor a
look: what it said last stands meanwhile, and that it does is told.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from brctl.model.errors import BrctlError

ASKED_EVERY_S = 15.0
"""A swap elsewhere moves ranks."""

LATE_S = 15.0
"""An answer that takes longer than the time between two questions is told."""

GIVEN_UP_S = 120.0

T = TypeVar("T")


class AskedAgain(Generic[T]):
    """A question that takes its time, asked anew once its answer is known and has become old.

    Args:
        ask: Asks it.
        seconds: When it was asked last, by the monotonic clock of `answer`.

    Attributes:
        trouble: Why the last answer is old; "" while it is not.
    """

    def __init__(self, ask: Callable[[], Awaitable[T]], seconds: float) -> None:
        self._ask = ask
        self._asked_s = seconds
        self._task: asyncio.Task[T] | None = None
        self.trouble = ""

    def answer(self, seconds: float) -> T | None:
        """A new answer, once; None while there is none. Never waits."""
        if self._task is None:
            if seconds - self._asked_s >= ASKED_EVERY_S:
                self._asked_s = seconds
                self._task = asyncio.ensure_future(self._bounded())
            return None
        if not self._task.done():
            if seconds - self._asked_s >= LATE_S:
                self.trouble = "it has not answered yet"
            return None
        task, self._task = self._task, None
        try:
            found = task.result()
        except TimeoutError:
            self.trouble = f"no answer in {GIVEN_UP_S:.0f} s"
        except (BrctlError, OSError) as error:
            self.trouble = str(error)
        else:
            self.trouble = ""
            return found
        return None

    async def _bounded(self) -> T:
        async with asyncio.timeout(GIVEN_UP_S):
            return await self._ask()

    async def close(self) -> None:
        """Ask no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
