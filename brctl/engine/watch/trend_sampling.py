"""What a watcher adds to the trends: once a minute, from answers it has anyway."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from brctl.engine.sweeps.trend_store import TrendStore
from brctl.evidence.job.status import read_job
from brctl.evidence.trends import CounterTotals, StepMark, counted, job_samples, node_samples
from brctl.model.command import Outcome
from brctl.model.jobs.job import Job
from brctl.model.jobs.trends import TrendSample
from brctl.model.sweeps.report import CheckResult, NodeReport
from brctl.watch.rules import round_of

SAMPLE_EVERY_S = 60.0


@dataclass(slots=True)
class SampledNode:
    """A node's newest answers; one that did not change is not sent again.

    Attributes:
        looks: How often each round was done; `sampled` as of the sample before.
    """

    results: dict[str, CheckResult] = field(default_factory=dict)
    looks: Mapping[float, int] = field(default_factory=dict)
    sampled: Mapping[float, int] = field(default_factory=dict)

    def fresh(self, node: str) -> NodeReport:
        """What was looked at since the sample before: an answer that nobody renews is none."""
        done = {every_s for every_s, n in self.looks.items() if n != self.sampled.get(every_s, 0)}
        self.sampled = self.looks
        kept = (result for name, result in self.results.items() if round_of(name) in done)
        return NodeReport(node, Outcome.ANSWERED, tuple(kept))


class TrendSampling:
    """The trends of what a watcher looks at."""

    def __init__(self, store: TrendStore, say: Callable[[str], None]) -> None:
        self._store, self._say = store, say
        self._nodes: dict[str, SampledNode] = {}
        self._counters: Mapping[str, CounterTotals] = {}
        self._steps: dict[str, StepMark] = {}
        self._writing: asyncio.Task[None] | None = None
        self._trouble = ""

    def take(self, node: str, fresh: Mapping[str, CheckResult], looks: Mapping[float, int]) -> None:
        """What a node said."""
        held = self._nodes.setdefault(node, SampledNode())
        held.results.update(fresh)
        held.looks = looks

    def sample(self, now: datetime, seconds: float, jobs: Sequence[Job]) -> None:
        """Keep what was said since the last sample; beside the loop, for a database may be busy."""
        if self._writing is not None and not self._writing.done():
            return
        reports = {name: held.fresh(name) for name, held in self._nodes.items()}
        self._counters = counted(reports.values(), self._counters)
        of_nodes = node_samples(reports.values(), self._counters)
        found = [*of_nodes, *self._of_jobs(jobs, reports, seconds)]
        self._writing = asyncio.ensure_future(self._write(now, found))

    async def close(self) -> None:
        """Wait for the sample that is being written."""
        if self._writing is not None:
            await self._writing

    def _of_jobs(
        self, jobs: Iterable[Job], reports: Mapping[str, NodeReport], seconds: float
    ) -> Sequence[TrendSample]:
        found: list[TrendSample] = []
        for job in jobs:
            status = read_job(job, [reports[node] for node in job.nodes if node in reports])
            found += job_samples(status, self._steps.get(job.name), seconds)
            if status.step is None:
                self._steps.pop(job.name, None)
            else:
                self._steps[job.name] = StepMark(status.step, seconds)
        return found

    async def _write(self, now: datetime, samples: Sequence[TrendSample]) -> None:
        """A database that takes nothing leaves a gap, and is told once."""
        try:
            await asyncio.to_thread(self._store.add, now, samples)
        except (OSError, sqlite3.Error) as error:
            if str(error) != self._trouble:
                self._say(f"warning: trends are not kept: {error}")
            self._trouble = str(error)
        else:
            self._trouble = ""
