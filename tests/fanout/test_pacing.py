"""Our own delays are not the node's: deadlines move with them, and fewer logins run at once."""

import asyncio
import dataclasses
import time
from pathlib import Path

import pytest

from brctl.fanout.asyncssh.transport import AsyncsshTransport
from brctl.fanout.idle import Idle
from brctl.fanout.pacing import LEAST, Pace
from brctl.model.command import Command, Outcome
from tests.contract.transport_sites import open_site
from tests.timeouts import TIMEOUT_S

LOGIN_S = 0.6


async def _be_busy(seconds: float, piece_s: float) -> None:
    """What a controller without CPU looks like from inside: the loop is held again and again."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(piece_s)  # noqa: ASYNC251 - holding the loop is the point
        await asyncio.sleep(0)


async def test_a_healthy_node_answers_a_controller_that_is_late(tmp_path: Path) -> None:
    """The loop is held for three times the login deadline while the node's answers wait in it."""
    async with open_site(tmp_path, real_sshd=False) as site:
        transport = AsyncsshTransport(dataclasses.replace(site.ssh, login_timeout_s=2.0))
        running = asyncio.create_task(transport.run(site.good, Command(("true",))))
        await _be_busy(6.0, 0.25)
        answer = await running
        await transport.close()
    assert (answer.outcome, answer.exit_status) == (Outcome.ANSWERED, 0), answer.detail


async def test_a_mute_node_times_out_all_the_same(tmp_path: Path) -> None:
    """Only our delay is added: a node that says nothing ends one deadline after we are on time."""
    async with open_site(tmp_path, real_sshd=False) as site:
        transport = AsyncsshTransport(dataclasses.replace(site.ssh, login_timeout_s=LOGIN_S))
        running = asyncio.create_task(transport.run(site.mute, Command(("true",))))
        await asyncio.sleep(0.1)
        await _be_busy(1.0, 0.5)
        answer = await running
        await transport.close()
    assert answer.outcome is Outcome.LOGIN_TIMED_OUT
    # The first try, and the others that a time of slowness grants, each on time at last.
    assert 1.0 + LOGIN_S / 2 < answer.seconds < TIMEOUT_S


async def test_a_deadline_is_the_nodes_own_when_we_are_on_time() -> None:
    """No delay of ours, no extra time."""
    pace = Pace(4, 0.3)
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        async with pace.login():
            await asyncio.Event().wait()
    assert 0.25 < time.monotonic() - started < TIMEOUT_S


async def test_lag_lowers_the_logins_under_way_and_quick_ones_raise_them() -> None:
    """Down to a floor that keeps going, and up again to what was asked for."""
    pace = Pace(64, 10.0)
    began = asyncio.get_running_loop().time()
    async with pace.login():
        for _ in range(5):
            time.sleep(0.55)  # noqa: ASYNC251 - holding the loop is the point
            await asyncio.sleep(0.06)
    assert pace.allowed < 24
    assert pace.allowed >= LEAST
    assert pace.shrunk_since(began)
    for _ in range(4000):
        async with pace.login():
            pass
    assert pace.allowed == 64


async def test_no_more_logins_than_allowed_and_each_gets_its_turn() -> None:
    """A turn given to one that was cancelled meanwhile goes to the next."""
    pace, under_way, most = Pace(3, 10.0), 0, 0

    async def login() -> None:
        nonlocal under_way, most
        async with pace.login():
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.01)
            under_way -= 1

    tasks = [asyncio.create_task(login()) for _ in range(30)]
    await asyncio.sleep(0.005)
    for task in tasks[3:12]:
        task.cancel()
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), TIMEOUT_S)
    assert most == 3
    assert sum(task.cancelled() for task in tasks) == 9


def test_the_longest_unused_connection_goes_first() -> None:
    """One in use never goes, however many are too many."""
    idle = Idle(2)
    for name in "abcd":
        idle.claim(name)
    assert [list(idle.release(name)) for name in "abc"] == [[], [], ["a"]]
    idle.claim("b")
    idle.claim("b")
    assert list(idle.release("d")) == []
    assert list(idle.release("b")) == []
    assert list(idle.release("b")) == ["c"]
