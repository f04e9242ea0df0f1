"""A watcher in a made-up world: what it suspects, asks, decides, and leaves on disk."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from brctl.engine.watch.folder import WatchFolder
from brctl.engine.watch.leader import LEASE_S, Leader, refuse_old_token
from brctl.model.errors import GuardError, LockedError
from brctl.model.sweeps.check import Check
from brctl.model.watch.policy import WatchMode
from brctl.watch.rules import OF_CHECK, ROUNDS
from tests.fakes.watched_world import FLEET, FOUND, JOB, LOST, World, run, steps
from tests.fakes.watching import FakeClock


class Unchallenged(Leader):
    """Leads without writing so; a day of ticks is no test of a disk."""

    def renew(self, now: datetime) -> None:
        """Nobody else is there."""


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


@pytest.mark.parametrize("cap", [WatchMode.ACT, WatchMode.PROPOSE])
def test_a_diagnosis_that_ends_after_a_person_said_stop_does_nothing(
    tmp_path: Path, checks: dict[str, Check], cap: WatchMode
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.watcher._cap = cap
        world.nodes.say("n1", LOST)
        await world.look()
        world.folder.stop("alice", "maintenance", world.clock.now)
        await world.look(2)
        assert world.hands.examined
        assert (world.hands.fixes, world.hands.pages) == ([], [])
        assert world.watcher.state.acts == ()
        with pytest.raises(GuardError, match="stopped by alice: maintenance"):
            refuse_old_token(world.path, "here", world.leader.token)
        world.folder.lift()
        refuse_old_token(world.path, "here", world.leader.token)

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
