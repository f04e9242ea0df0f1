"""A watcher over 128 made-up nodes and a job on two of them, and what a test does to it."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path

from brctl.engine.application.watching.watcher import Watcher
from brctl.engine.watch.folder import WatchFolder
from brctl.engine.watch.leader import Leader
from brctl.model.jobs.job import Job, example_job
from brctl.model.sweeps.check import Check
from brctl.model.watch.policy import WatchLimits, WatchMode, WatchPolicy
from tests.fakes.watching import FakeClock, FakeHands, FakeNodes, measured

JOB = replace(example_job(), nodes=("n1", "n2"), axes=(("dp", 2),), stall_after_s=60.0)
FLEET = frozenset(f"n{number}" for number in range(1, 129))
ACT = WatchPolicy(mode=WatchMode.ACT, limits=WatchLimits(start_up_s=0.0))
LOST = measured("gpu.devices", "gpu:GPU-1", gpu__device__lost=True)
FOUND = measured("gpu.devices", "gpu:GPU-1", gpu__device__lost=False)


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

    def taken_over(self, hands: FakeHands | None = None) -> None:
        """Its watcher ends and another takes over, with other hands where they are given."""
        self.hands = hands or self.hands
        self.leader.release()
        self.another()

    async def look(self, ticks: int = 1, every_s: float = 2.0) -> None:
        for _ in range(ticks):
            self.clock.go(every_s)
            self.watcher.tick(self.clock.now, self.clock.seconds, self.jobs, self.fleet)
            await self.watcher.settle()

    async def end(self) -> None:
        """What a kill does to work that was begun."""
        begun = self.watcher._begun()
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)

    def kinds(self) -> list[str]:
        return [record.kind for record in self.folder.records(1000)]


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
