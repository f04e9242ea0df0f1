"""Many at once: one message, one diagnosis, no node taken; and never more looks than the budget."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from brctl.engine.application.watching.contract import Examined
from brctl.model.errors import UnavailableError
from brctl.model.jobs.job import Job
from brctl.model.sweeps.check import Check
from brctl.model.watch.policy import WatchPolicy
from brctl.model.watch.state import Suspicion
from brctl.watch.deep_looks import NODES_AT_ONCE
from brctl.watch.gates import GateFacts, WatchedVerdict
from tests.fakes.watched_world import FOUND, JOB, LOST, World, run
from tests.fakes.watching import FakeHands

THIRTY = [f"n{number}" for number in range(3, 33)]


def test_thirty_lost_gpus_at_once_are_told_once_and_no_node_is_taken(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        for node in THIRTY:
            world.nodes.say(node, LOST)
        await world.look(20)
        assert [event.about for event in world.hands.events] == ["many-gpu"]
        assert set(world.hands.events[0].nodes) == set(THIRTY)
        assert len(world.hands.examined) == 1
        assert (world.hands.fixes, world.hands.pages) == ([], [])
        assert world.watcher.state.breaker_open == ""
        decision = next(r for r in world.folder.records(99) if r.kind == "decision")
        assert decision.text("held").startswith("crowd: 30 of 128 nodes at once")

    run(scenario)


def test_a_crowd_that_nobody_could_be_told_of_is_told_again_until_somebody_is(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    """A sink that is down: the verdict is paged by itself, and a restart forgets nothing."""

    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.hands.hears = False
        for node in THIRTY:
            world.nodes.say(node, LOST)
        await world.look(10)
        assert len(world.hands.events) == 1
        assert world.hands.pages == ["V-1"]
        world.taken_over()
        world.hands.hears = True
        await world.look(60)
        assert [(e.about, len(e.nodes)) for e in world.hands.events] == [("many-gpu", 30)] * 2
        assert not world.watcher.state.untold

    run(scenario)


def test_a_crowd_that_ends_before_anybody_heard_of_it_is_told_to_nobody(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.hands.hears = False
        for said in (LOST, FOUND):
            for node in THIRTY:
                world.nodes.say(node, said)
            await world.look(5)
        world.hands.hears = True
        await world.look(60)
        assert [event.over for event in world.hands.events] == [False]

    run(scenario)


def test_nodes_that_stay_broken_when_a_crowd_is_over_are_judged_each_by_itself(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        for node in THIRTY:
            world.nodes.say(node, LOST)
        await world.look(5)
        for node in THIRTY[1:]:
            world.nodes.say(node, FOUND)
        await world.look(5)
        assert [(e.about, e.over) for e in world.hands.events] == [
            ("many-gpu", False), ("many-gpu", True),
        ]  # fmt: skip
        assert world.hands.examined[1:] == [("", ("n3",))]
        assert len(world.hands.fixes) == 1

    run(scenario)


def test_half_of_the_fleet_that_goes_away_one_after_another_is_one_message(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    """Ten nodes a tick: the first are suspected before anybody can know how many they become."""

    async def scenario() -> None:
        world = World(tmp_path, checks)
        for tick in range(30):
            away = [f"n{number}" for number in range(1, min(10 * tick, 64) + 1)]
            world.nodes.away = {n: world.nodes.away.get(n, 29.0) + 2.0 for n in away}
            await world.look()
        await world.look(30)
        assert [event.about for event in world.hands.events] == ["many-silent"]
        assert (world.hands.examined, world.hands.pages, world.hands.fixes) == ([], [], [])
        world.nodes.away = {}
        await world.look()
        assert world.hands.events[-1].over

    run(scenario)


class SlowHands(FakeHands):
    """Diagnoses that end when a test says so."""

    def __init__(self, world: World) -> None:
        super().__init__(world.clock)
        self.go_on = asyncio.Event()
        self.most = self.going_on = 0

    async def examine(self, job: Job | None, nodes: Sequence[str]) -> Examined:
        self.going_on += len(nodes)
        self.most = max(self.most, self.going_on)
        await self.go_on.wait()
        self.going_on -= len(nodes)
        return await super().examine(job, nodes)


async def tick(world: World) -> None:
    world.clock.go(2.0)
    world.watcher.tick(world.clock.now, world.clock.seconds, world.jobs, world.fleet)
    await asyncio.sleep(0)


def test_a_diagnosis_of_a_crowd_that_is_over_covers_no_later_crowd(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    """The first crowd ends, and another begins, while its diagnosis still goes on."""

    async def scenario() -> None:
        world = World(tmp_path, checks)
        slow = SlowHands(world)
        world.taken_over(slow)
        for said in (LOST, FOUND, LOST):
            for node in THIRTY:
                world.nodes.say(node, said)
            for _ in range(3):
                await tick(world)
        assert slow.going_on == len(THIRTY)
        slow.go_on.set()
        await world.look(3)
        assert [len(nodes) for _, nodes in slow.examined] == [30, 30]

    run(scenario)


class ForgetfulHands(FakeHands):
    """Does not know the facts when it is asked for the first time."""

    asked = 0

    async def facts(self, verdict: WatchedVerdict, policy: WatchPolicy) -> GateFacts:
        self.asked += 1
        if self.asked == 1:
            raise UnavailableError("the scheduler does not answer")
        return await super().facts(verdict, policy)


def test_a_verdict_of_a_crowd_that_nobody_decided_about_covers_none_of_it(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.taken_over(ForgetfulHands(world.clock))
        for node in THIRTY:
            world.nodes.say(node, LOST)
        await world.look(40)
        assert len(world.hands.examined) == 2
        decided = [r.text("verdict") for r in world.folder.records(99) if r.kind == "decision"]
        assert decided == ["V-2"]

    run(scenario)


def test_more_jobs_in_trouble_than_the_budget_has_nodes_wait_for_each_other(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    """Six jobs of sixteen nodes, one sick node each: no crowd, and four diagnoses at once."""

    async def scenario() -> None:
        world = World(tmp_path, checks)
        slow = SlowHands(world)
        world.taken_over(slow)
        world.jobs = tuple(
            replace(JOB, name=f"job-{first}", nodes=tuple(f"n{first + k}" for k in range(16)))
            for first in range(1, 96, 16)
        )
        for job in world.jobs:
            world.nodes.say(job.nodes[0], LOST)
        for _ in range(4):
            await tick(world)
        assert slow.most == NODES_AT_ONCE
        slow.go_on.set()
        await world.look(3)
        assert sorted(about for about, _ in slow.examined) == sorted(j.name for j in world.jobs)

    run(scenario)


def test_a_node_that_the_diagnosis_of_its_job_did_not_name_is_diagnosed_itself(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        for node in JOB.nodes:
            world.nodes.say(node, LOST)
        await world.look(6)
        assert len(world.hands.examined) == 2, "the first diagnosis named n1 alone"

    run(scenario)


def test_a_scheduler_that_does_not_answer_is_said_once_and_once_when_it_does(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        for trouble in ("", "no answer", "no answer", ""):
            world.clock.go(2.0)
            world.watcher.tick(
                world.clock.now, world.clock.seconds, world.jobs, world.fleet, trouble
            )
        said = [r.text("text") for r in world.folder.records(9) if r.kind == "scheduler"]
        assert said == ["where jobs run cannot be asked: no answer", "it answers again"]

    run(scenario)


def test_what_another_version_suspected_by_a_rule_of_its_own_is_forgotten(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        fan = Suspicion("fan", "n3", world.clock.now, 1, "a fan stands still")
        world.folder.save_state(
            replace(world.watcher.state, suspicions={fan.key: fan}, crowds={"fan": ("n3",)})
        )
        world.taken_over()
        await world.look(2)
        assert not world.watcher.state.suspicions
        assert [event.text for event in world.hands.events] == [
            "fan: no longer on many nodes at once"
        ]

    run(scenario)
