"""What a watcher keeps of its looks: once a minute, and nothing of a node that nobody renews."""

import asyncio
import sqlite3
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

from brctl.engine.sweeps.trend_store import TrendStore
from brctl.engine.watch.trend_sampling import TrendSampling
from brctl.model.jobs.job import example_job
from brctl.model.jobs.trends import TrendSample
from brctl.model.sweeps.report import CheckResult
from tests.fakes.nodes import NOW
from tests.fakes.watching import measured

JOB = example_job()
HEAT = measured("gpu.clocks", "gpu:A", gpu__clocks__temperature_c=60)


def ranks(step: int) -> CheckResult:
    return measured("job.ranks", "rank:0", job__rank__step=step, job__rank__alive=True)


def kept(store: TrendStore, subject: str) -> dict[str, list[float | None]]:
    found = store.read([subject], NOW + timedelta(minutes=4))
    return {s.metric: list(s.values[-4:]) for s in found.series}


def test_an_answer_that_did_not_change_counts_while_looks_go_on(tmp_path: Path) -> None:
    """It is not sent again; a round that no longer ends leaves a gap, and so does silence."""
    store = TrendStore(tmp_path, "site")
    sampling = TrendSampling(store, print)

    async def scenario() -> None:
        for minute, looks in enumerate([{30.0: 2}, {30.0: 4}, {30.0: 4}, {30.0: 6}]):
            sampling.take("n1", {} if minute else {"gpu.clocks": HEAT}, looks)
            sampling.sample(NOW + timedelta(minutes=minute), 60.0 * minute, [])
            await sampling.close()

    asyncio.run(scenario())
    assert kept(store, "n1") == {"temperature_c": [60.0, 60.0, None, 60.0]}


def test_the_rate_of_a_job_is_that_between_two_samples(tmp_path: Path) -> None:
    store = TrendStore(tmp_path, "site")
    sampling = TrendSampling(store, print)

    async def scenario() -> None:
        for minute, step in enumerate([100, 220, 220, 30]):
            fresh = {"job.ranks": ranks(step)}
            sampling.take(JOB.node_of(0), fresh, {10.0: 6 * minute + 1})
            sampling.sample(NOW + timedelta(minutes=minute), 60.0 * minute, [JOB])
            await sampling.close()

    asyncio.run(scenario())
    assert kept(store, JOB.name) == {"steps_per_s": [None, 2.0, 0.0, None]}


class FullDisk(TrendStore):
    """Takes nothing."""

    def add(self, at: datetime, samples: Iterable[TrendSample]) -> None:
        raise sqlite3.OperationalError("database or disk is full")


def test_a_database_that_takes_nothing_ends_no_watcher_and_is_told_once(tmp_path: Path) -> None:
    told: list[str] = []
    sampling = TrendSampling(FullDisk(tmp_path, "site"), told.append)

    async def scenario() -> None:
        for minute in range(3):
            sampling.sample(NOW + timedelta(minutes=minute), 60.0 * minute, [])
            await sampling.close()

    asyncio.run(scenario())
    assert told == ["warning: trends are not kept: database or disk is full"]
