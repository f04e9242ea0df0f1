"""A watcher in a made-up world: what it suspects, asks, decides, and leaves on disk."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from brctl.engine.application.watching.watcher import Watcher
from brctl.engine.watch.folder import WatchFolder
from brctl.engine.watch.leader import LEASE_S, Leader
from brctl.library.checks import usable_checks
from brctl.model.errors import LockedError, UnavailableError
from brctl.model.jobs.job import Job, example_job
from brctl.model.sweeps.check import Check
from brctl.model.watch.policy import WatchLimits, WatchMode, WatchPolicy
from brctl.model.watch.state import WatchRecord, WatchState
from brctl.view.watch.record import record_line
from brctl.watch.gates import GateFacts, WatchedVerdict
from brctl.watch.rules import OF_CHECK, ROUNDS
from tests.fakes.watching import FakeClock, FakeHands, FakeNodes, measured

JOB = replace(example_job(), nodes=("n1", "n2"), axes=(("dp", 2),), stall_after_s=60.0)
FLEET = frozenset(f"n{number}" for number in range(1, 129))
ACT = WatchPolicy(mode=WatchMode.ACT, limits=WatchLimits(start_up_s=0.0))
LOST = measured("gpu.devices", "gpu:GPU-1", gpu__device__lost=True)
FOUND = measured("gpu.devices", "gpu:GPU-1", gpu__device__lost=False)


@pytest.fixture(scope="module")
def checks() -> dict[str, Check]:
    wanted = {name for names in ROUNDS.values() for name in names}
    return {name: check for name, check in usable_checks()[0].items() if name in wanted}


class World:
    """One watcher over 128 nodes and a job on two of them."""

    def __init__(
        self, folder: Path, checks: dict[str, Check], fleet: frozenset[str] = FLEET
    ) -> None:
        self.path, self.checks, self.fleet = folder, checks, fleet
        self.clock, self.nodes = FakeClock(), FakeNodes(sorted(fleet))
        self.hands = FakeHands(self.clock)
        self.jobs: tuple[Job, ...] = (JOB,)
        self.told: list[str] = []
        self.folder = WatchFolder(folder, "here")
        self.watcher = self.another()

    def another(self) -> Watcher:
        """A new watcher that takes over, as after a restart."""
        self.leader = Leader(self.path, "here")
        self.leader.take(self.clock.now)
        fresh = Watcher(
            self.folder, self.leader, self.nodes, self.hands, self.checks, ACT,
            WatchMode.ACT, self.told.append,
        )  # fmt: skip
        fresh.begin(self.clock.now, "0.1.0 policy", len(self.fleet))
        self.watcher = fresh
        return fresh

    async def look(self, ticks: int = 1, every_s: float = 2.0) -> None:
        for _ in range(ticks):
            self.clock.go(every_s)
            self.watcher.tick(self.clock.now, self.clock.seconds, self.jobs, self.fleet)
            await self.watcher.settle()

    async def end(self) -> None:
        """What a kill does to work that was begun."""
        begun = list(self.watcher._deep.values())
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)

    def kinds(self) -> list[str]:
        return [record.kind for record in self.folder.records(1000)]


class Unchallenged(Leader):
    """Leads without writing so; a day of ticks is no test of a disk."""

    def renew(self, now: datetime) -> None:
        """Nobody else is there."""


def steps(
    world: World, step: int, age_s: float, phase: str = "forward", **more: bool | int
) -> None:
    """Both ranks say where they are."""
    for number, node in enumerate(JOB.nodes):
        world.nodes.say(
            node,
            measured(
                "job.ranks", f"rank:{number}", job__rank__alive=True, job__rank__step=step,
                job__rank__phase=phase, job__rank__phase_age_s=age_s,
                job__rank__progress_age_s=age_s, job__rank__step_s=1.0, **more,
            ),
        )  # fmt: skip


def run(scenario: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(scenario())


def test_a_lost_gpu_is_suspected_confirmed_decided_and_fixed_once(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.nodes.say("n1", LOST)
        await world.look()
        assert world.hands.examined == []
        await world.look(5)
        assert world.hands.examined == [("example", ("n1", "n2"))]
        assert world.hands.fixes == [("V-1", world.leader.token)]
        assert world.kinds() == ["start", "suspicion", "confirmed", "verdict", "decision"]

    run(scenario)


def test_a_fault_that_healed_before_the_diagnosis_changes_nothing(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.hands.heals = True
        world.nodes.say("n1", LOST)
        await world.look(3)
        assert world.hands.fixes == []
        decision = world.folder.records(1)[0]
        assert decision.text("held").startswith("sure: no-fault names no cause")

    run(scenario)


def test_thirty_nodes_that_fall_silent_at_once_are_one_message_and_no_cordon(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.nodes.away = {f"n{number}": 90.0 for number in range(3, 33)}
        await world.look(20)
        assert world.kinds() == ["start", "network"]
        assert world.hands.examined == []
        world.nodes.away = {"n3": 90.0}
        await world.look()
        world.nodes.away = {"n3": 120.0}
        await world.look()
        assert world.hands.examined == [("", ("n3",))]

    run(scenario)


def test_a_nan_is_told_at_the_first_look_and_accuses_no_node(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        steps(world, 96, 0.2, job__rank__loss_finite=False, job__rank__first_nonfinite_step=95)
        await world.look()
        suspicion = next(r for r in world.folder.records(9) if r.kind == "suspicion")
        assert suspicion.text("rule") == "not-a-number"
        assert suspicion.text("subject") == "example"
        assert suspicion.text("text") == "no number on 2 ranks since step 95"

    run(scenario)


def test_a_job_without_a_step_is_diagnosed(tmp_path: Path, checks: dict[str, Check]) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        steps(world, 95, 1.0)
        await world.look()
        steps(world, 95, 70.0)
        await world.look(1, every_s=69.0)
        assert world.hands.examined == [("example", ("n1", "n2"))]

    run(scenario)


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_jumps_an_hour_is_no_stall(
    tmp_path: Path, checks: dict[str, Check], hours: int
) -> None:
    """The nodes' clocks and ours: the age that a node tells is an hour more at once."""

    async def scenario() -> None:
        world = World(tmp_path, checks)
        steps(world, 95, 1.0)
        await world.look()
        world.clock.go(0.0, jump=timedelta(hours=hours))
        steps(world, 95, 3600.0)
        await world.look(4)
        assert world.hands.examined == []
        assert "clock" in world.kinds()

    run(scenario)


def test_while_a_run_is_at_work_on_a_job_nothing_is_suspected_of_it(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.hands.working["example"] = "R-7 (stop-job) stopped it"
        steps(world, 95, 70.0, job__rank__exit_status=9)
        await world.look(40)
        assert world.kinds() == ["start"]

    run(scenario)


def test_a_job_that_ends_as_it_should_is_no_stall(tmp_path: Path, checks: dict[str, Check]) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        steps(world, 95, 70.0, job__rank__exit_status=0)
        await world.look(60)
        assert world.kinds() == ["start"]

    run(scenario)


def test_a_node_that_a_person_uncordoned_is_left_alone(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.hands.people["n1"] = world.clock.now - timedelta(hours=2)
        world.nodes.say("n1", LOST)
        await world.look(3)
        assert world.hands.fixes == []
        assert world.hands.pages == ["V-1"], "a page keeps nobody from the node"
        assert world.folder.records(1)[0].text("held").startswith("quiet:")

    run(scenario)


def test_a_frozen_leader_finds_out_before_it_acts(tmp_path: Path, checks: dict[str, Check]) -> None:
    """Its lease ran out, another one leads with a higher number; the frozen one ends."""

    async def scenario() -> None:
        world = World(tmp_path, checks)
        frozen = world.watcher
        world.nodes.say("n1", LOST)
        await world.look()
        world.clock.go(LEASE_S + 1)
        world.another()
        with pytest.raises(LockedError, match="holds it now"):
            frozen.tick(world.clock.now, world.clock.seconds, world.jobs, FLEET)
        assert world.hands.fixes == []

    run(scenario)


def test_a_second_watcher_is_told_who_leads(tmp_path: Path) -> None:
    clock = FakeClock()
    first, second = Leader(tmp_path, "here"), Leader(tmp_path, "here")
    first.holder, second.holder = "ctl1 pid 7", "ctl2 pid 9"
    first.take(clock.now)
    with pytest.raises(LockedError, match="ctl1 pid 7 watches here already"):
        second.take(clock.now)
    second.take(clock.now + timedelta(seconds=LEASE_S + 1))
    assert second.token > first.token


def test_after_a_restart_the_breaker_and_the_attempts_are_what_they_were(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.nodes.say("n1", LOST)
        await world.look(3)
        assert len(world.hands.fixes) == 1
        world.clock.go(LEASE_S + 1)
        world.another()
        assert [act.verdict for act in world.watcher.state.acts] == ["V-1"]
        world.nodes.say("n1", LOST)
        await world.look(3)
        assert len(world.hands.fixes) == 1, "the same suspicion was decided about already"

    run(scenario)


def test_killed_at_any_write_it_starts_a_fix_at_most_once_a_verdict(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    """Every write to disk is a point where it may die; another one takes over each time."""

    class Killed(BaseException):
        pass

    class Mortal(WatchFolder):
        left = 10**6

        def save_state(self, state: object) -> None:
            self._live()
            super().save_state(state)  # type: ignore[arg-type]

        def append(self, record: object) -> None:
            self._live()
            super().append(record)  # type: ignore[arg-type]

        def _live(self) -> None:
            self.left -= 1
            if self.left < 0:
                raise Killed

    async def scenario(point: int) -> list[str]:
        world = World(tmp_path / str(point), checks)
        mortal = Mortal(world.path, "here")
        world.folder = mortal
        world.watcher._folder = mortal
        world.nodes.say("n1", LOST)
        mortal.left = point
        try:
            await world.look(4)
        except Killed:
            await world.end()
            mortal.left = 10**6
            world.clock.go(LEASE_S + 1)
            world.another()
            world.nodes.say("n1", LOST)
            await world.look(4)
        return [verdict for verdict, _ in world.hands.fixes]

    for point in range(12):
        started = asyncio.run(scenario(point))
        assert len(started) == len(set(started)) == 1, f"killed before write {point}"


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
        world.hands = Filling(world.clock)
        world.folder = disk
        world.leader.release()
        world.another()
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


def test_a_day_of_a_healthy_fleet_suspects_nothing(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    """24 h in minutes: steps, an evaluation of ten minutes, counters that stand still."""

    async def scenario() -> None:
        world = World(tmp_path, checks, fleet=frozenset(JOB.nodes))
        world.watcher._leader = Unchallenged(tmp_path, "here")
        world.nodes.say("n1", FOUND)
        for minute in range(24 * 60):
            if minute % 120 >= 10:
                steps(world, minute, 0.3)
            elif minute % 120 == 0:
                steps(world, minute, 400.0, "evaluation")
            await world.look(1, every_s=60.0)
        assert world.kinds() == ["start"]

    run(scenario)


def test_every_check_of_a_rule_is_asked_in_some_round() -> None:
    asked = {name for names in ROUNDS.values() for name in names}
    assert set(OF_CHECK) <= asked
