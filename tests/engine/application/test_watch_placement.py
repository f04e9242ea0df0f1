"""Where jobs run is asked beside the loop: slow, dead and failing schedulers hold up nothing."""

import asyncio
from collections.abc import Awaitable, Callable

from brctl.engine.application.watching.placement import ASKED_EVERY_S, LATE_S, AskedAgain
from brctl.model.errors import UnavailableError


class Scheduler:
    """Answers each question with what a test sets, once it may."""

    def __init__(self) -> None:
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.error: Exception | None = None

    async def ask(self) -> int:
        self.asked += 1
        await self.may_answer.wait()
        if self.error is not None:
            raise self.error
        return self.asked


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def with_scheduler(scenario: Callable[[Scheduler, AskedAgain[int]], Awaitable[None]]) -> None:
    async def whole() -> None:
        scheduler = Scheduler()
        asked = AskedAgain(scheduler.ask, 0.0)
        try:
            await scenario(scheduler, asked)
        finally:
            await asked.close()

    asyncio.run(whole())


def test_a_slow_scheduler_is_asked_once_holds_up_nobody_and_is_told() -> None:
    async def scenario(scheduler: Scheduler, asked: AskedAgain[int]) -> None:
        for second in range(int(ASKED_EVERY_S + LATE_S) + 1):
            assert asked.answer(float(second)) is None
            await settle()
        assert (scheduler.asked, asked.trouble) == (1, "it has not answered yet")
        scheduler.may_answer.set()
        await settle()
        assert asked.answer(40.0) == 1
        assert asked.trouble == ""

    with_scheduler(scenario)


def test_a_scheduler_that_fails_says_why_and_is_asked_again() -> None:
    async def scenario(scheduler: Scheduler, asked: AskedAgain[int]) -> None:
        scheduler.may_answer.set()
        scheduler.error = UnavailableError("slurmctld is down")
        assert asked.answer(ASKED_EVERY_S) is None
        await settle()
        assert asked.answer(ASKED_EVERY_S + 1) is None
        assert asked.trouble == "slurmctld is down"
        scheduler.error = None
        assert asked.answer(2 * ASKED_EVERY_S) is None
        await settle()
        assert asked.answer(2 * ASKED_EVERY_S + 1) == 2
        assert asked.trouble == ""

    with_scheduler(scenario)


def test_an_answer_is_given_once_and_asked_for_no_oftener_than_its_time() -> None:
    async def scenario(scheduler: Scheduler, asked: AskedAgain[int]) -> None:
        scheduler.may_answer.set()
        found = []
        for second in range(46):
            found.append(asked.answer(float(second)))
            await settle()
        assert [one for one in found if one is not None] == [1, 2]

    with_scheduler(scenario)
