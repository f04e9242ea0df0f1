"""What a watcher judges anew: later signs, what was held or failed, and what nobody heard of."""

from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.watch.folder import WatchFolder
from brctl.engine.watch.leader import LEASE_S
from brctl.model.errors import UnavailableError
from brctl.model.sweeps.check import Check
from brctl.model.watch.policy import WatchPolicy
from brctl.model.watch.state import WatchRecord, WatchState
from brctl.view.watch.record import record_line
from brctl.watch.gates import GateFacts, WatchedVerdict
from tests.fakes.watched_world import LOST, World, run, steps
from tests.fakes.watching import FakeHands


def test_a_verdict_without_a_cause_hides_no_later_sign_of_the_job(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.hands.heals = True
        world.nodes.say("n1", LOST)
        await world.look(3)
        world.hands.heals = False
        steps(world, 95, 1.0, job__rank__exit_status=9)
        await world.look()
        assert [verdict for verdict, _ in world.hands.fixes] == ["V-2"]

    run(scenario)


def test_a_sign_that_comes_after_a_diagnosis_began_is_diagnosed_itself(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.nodes.say("n1", LOST)
        await world.look(3)
        steps(world, 95, 1.0, job__rank__exit_status=9)
        await world.look()
        assert len(world.hands.examined) == 2

    run(scenario)


def test_two_signs_confirmed_at_once_are_one_diagnosis(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.nodes.say("n1", LOST)
        await world.look()
        steps(world, 95, 1.0, job__rank__exit_status=9)
        await world.look(2)
        assert len(world.hands.examined) == 1
        assert {s.verdicts for s in world.watcher.state.suspicions.values()} == {("V-1",)}

    run(scenario)


def test_what_the_breaker_held_is_diagnosed_anew_once_a_person_closed_it(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.watcher.state = replace(world.watcher.state, breaker_open="4 of 3 nodes")
        world.nodes.say("n1", LOST)
        await world.look(3)
        assert (world.hands.pages, world.hands.fixes) == (["V-1"], [])
        world.folder.close_breaker("looked at it", world.clock.now)
        await world.look(2)
        assert [verdict for verdict, _ in world.hands.fixes] == ["V-2"]

    run(scenario)


def test_a_watcher_that_ended_between_verdict_and_decision_leaves_it_to_be_judged_anew(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.nodes.say("n1", LOST)
        await world.look(3)
        left = replace(world.watcher.state, decided={}, acts=())
        world.folder.save_state(left)
        world.clock.go(LEASE_S + 1)
        world.another()
        world.nodes.say("n1", LOST)
        await world.look(3)
        assert [verdict for verdict, _ in world.hands.fixes] == ["V-1", "V-2"]

    run(scenario)


def test_a_fix_that_was_being_started_when_the_watcher_ended_is_told_and_not_started_again(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.nodes.say("n1", LOST)
        await world.look(3)
        world.folder.save_state(replace(world.watcher.state, decided={}))
        world.clock.go(LEASE_S + 1)
        world.another()
        await world.look(3)
        assert len(world.hands.fixes) == 1
        assert "ended while it started fix V-1" in " ".join(world.told)

    run(scenario)


@pytest.mark.parametrize(
    "error", [UnavailableError("the scheduler is down"), BlockingIOError(11, "no more processes")]
)
def test_a_diagnosis_that_fails_is_tried_again_while_the_sign_stands(
    tmp_path: Path, checks: dict[str, Check], error: Exception
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.hands.failing = [error]
        world.nodes.say("n1", LOST)
        await world.look(5)
        assert (len(world.hands.examined), world.hands.fixes) == (1, [])
        await world.look(1, every_s=30.0)
        assert [verdict for verdict, _ in world.hands.fixes] == ["V-2"]
        assert "error" in world.kinds()

    run(scenario)


class FullDisk(WatchFolder):
    """A folder that takes nothing while a test says so."""

    full = False

    def save_state(self, state: WatchState) -> None:
        self._room()
        super().save_state(state)

    def append(self, record: WatchRecord) -> None:
        self._room()
        super().append(record)

    def _room(self) -> None:
        if self.full:
            raise OSError(28, "No space left on device")


def test_a_disk_that_is_full_while_it_judges_ends_no_watcher_and_starts_nothing(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    class Filling(FakeHands):
        async def facts(self, verdict: WatchedVerdict, policy: WatchPolicy) -> GateFacts:
            disk.full = len(self.examined) == 1
            return await super().facts(verdict, policy)

    disk = FullDisk(tmp_path, "here")

    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.folder = disk
        world.taken_over(Filling(world.clock))
        world.nodes.say("n1", LOST)
        await world.look(2)
        assert (len(world.hands.examined), world.hands.fixes) == (1, [])
        assert world.watcher.state.acts == ()
        with pytest.raises(OSError, match="No space"):
            await world.look()
        disk.full = False
        await world.look(2, every_s=30.0)
        assert [verdict for verdict, _ in world.hands.fixes] == ["V-2"]

    run(scenario)


def test_a_fix_that_is_refused_is_paged_and_not_recorded_as_started(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.hands.refuses = True
        world.nodes.say("n1", LOST)
        await world.look(3)
        assert world.hands.pages == ["V-1"]
        line = record_line(world.folder.records(1)[0])
        assert "fix not started  V-1  exit 5: a guard said no; brctl fix V-1 --yes" in line

    run(scenario)


def test_a_page_that_nobody_hears_is_recorded_so(tmp_path: Path, checks: dict[str, Check]) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.watcher.state = replace(world.watcher.state, breaker_open="4 of 3 nodes")
        world.hands.hears = False
        world.nodes.say("n1", LOST)
        await world.look(3)
        assert "proposed to nobody  V-1" in record_line(world.folder.records(1)[0])

    run(scenario)
