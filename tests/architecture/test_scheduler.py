"""Workers have their next tests before they ask, and small runs are still shared evenly."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from xdist.workermanage import WorkerController

from tests.scheduler import LEAST_AHEAD, MOST_AHEAD, EarlyScheduling


@dataclass(eq=False)
class FakeWorker:
    """What the scheduler uses of a worker: it keeps the tests it was told to run."""

    waiting: list[int] = field(default_factory=list)
    shutting_down: bool = False
    gateway: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(id="gw"))

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        assert not self.shutting_down
        self.waiting += indices

    def shutdown(self) -> None:
        self.shutting_down = True


class FakeConfig:
    """What the scheduler uses of pytest's: the options of the test command."""

    option = SimpleNamespace(loadscopereorder=False)

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def getvalue(self, name: str) -> list[str]:
        return {"tx": ["popen"] * self._workers}[name]


def begun(names: Sequence[str], workers: int) -> tuple[EarlyScheduling, list[FakeWorker]]:
    """A scheduler that has handed out the first tests."""
    config = FakeConfig(workers)
    scheduler = EarlyScheduling(config)  # type: ignore[arg-type]  # what is used of it is there
    fakes = [FakeWorker() for _ in range(workers)]
    for fake in fakes:
        scheduler.add_node(as_worker(fake))
    for fake in fakes:
        scheduler.add_node_collection(as_worker(fake), names)
    scheduler.schedule()
    return scheduler, fakes


def as_worker(fake: FakeWorker) -> WorkerController:
    return fake  # type: ignore[return-value]  # what is used of it is there


def finish_one(scheduler: EarlyScheduling, fake: FakeWorker) -> int:
    done = fake.waiting.pop(0)
    scheduler.mark_test_complete(as_worker(fake), done)
    return done


def test_a_worker_that_reports_has_its_next_tests_already() -> None:
    """With only the next one it would wait for the controller before each."""
    names = [f"test_a.py::test_{number}" for number in range(1000)]
    scheduler, fakes = begun(names, 4)
    for _ in range(100):
        assert [len(fake.waiting) for fake in fakes] == [MOST_AHEAD] * 4
        for fake in fakes:
            finish_one(scheduler, fake)


@pytest.mark.parametrize("count", [5, 19, 300])
def test_every_test_runs_once_and_at_the_end_no_worker_holds_many(count: int) -> None:
    names = [f"test_a.py::test_{number}" for number in range(count)]
    scheduler, fakes = begun(names, 4)
    ran: list[int] = []
    while any(fake.waiting for fake in fakes):
        ran += [finish_one(scheduler, fake) for fake in fakes if fake.waiting]
        if not scheduler.workqueue:
            assert max(len(fake.waiting) for fake in fakes) <= LEAST_AHEAD
    assert sorted(ran) == list(range(count))
    assert all(fake.shutting_down for fake in fakes)
    assert not scheduler.has_pending
    assert scheduler.tests_finished


def test_a_group_stays_with_one_worker_and_is_forgotten_when_it_has_run() -> None:
    names = [f"test_a.py::test_{number}@site" for number in range(30)]
    names += [f"test_b.py::test_{number}" for number in range(30)]
    scheduler, (first, second) = begun(names, 2)
    assert first.waiting == list(range(30))
    assert second.waiting[0] == 30
    for _ in range(29):
        finish_one(scheduler, first)
    assert "site" in scheduler.assigned_work[as_worker(first)]
    finish_one(scheduler, first)
    assert "site" not in scheduler.assigned_work[as_worker(first)]


def test_what_a_worker_held_when_it_ended_is_run_by_the_others() -> None:
    names = [f"test_a.py::test_{number}" for number in range(200)]
    scheduler, (first, second) = begun(names, 2)
    ran = [finish_one(scheduler, first), finish_one(scheduler, second)]
    crashed = first.waiting[0]
    assert scheduler.remove_node(as_worker(first)) == names[crashed]
    while second.waiting:
        ran.append(finish_one(scheduler, second))
    assert sorted(set(ran)) == list(range(200))
