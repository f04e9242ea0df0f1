"""Run the paper's two phases and say what they leave: one machine, a grid of them, or nothing.

Rounds of odd numbers are the first phase, rounds of even numbers the second. A fault that strikes
now and then is met by running a phase again until one of its groups fails.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from brctl.engine.controller.wiring import Controller
from brctl.engine.search.bisect import BisectOptions, Clock
from brctl.engine.search.group_runner import GroupRunner, RoundOrder
from brctl.engine.search.recorded import OnRound, SearchRecord, record_search
from brctl.engine.search.replay_runner import ReplayRunner, replay_command
from brctl.localise.problem import Group
from brctl.localise.replay import DualPhase, sharpest_phases, span_of
from brctl.localise.replay_digests import CHANCE, ROUNDS_TO_TELL_APART
from brctl.localise.replay_findings import conclude_phases
from brctl.localise.replay_rounds import (
    BAD_ENDS,
    chance_of,
    ended_badly,
    grid,
    is_settled,
    judge_reports,
    one_suspect,
    suspects_of,
    took_its_time,
)
from brctl.model.jobs.job import Job
from brctl.model.localisation import Bisection, RoundReport, Stage

_LEAST_CONFIRMING = 6
"""Enough for a machine that is wrong each time, also where a phase has two or three groups."""

_TIMES_USUAL = 5.0
_LEAST_ROUND_S = 60.0


@dataclass(frozen=True, slots=True)
class ReplayOrder:
    """How a job is replayed.

    Attributes:
        deadline_s: Longest replay of one phase.
        repetitions: Most runs of a phase in which no group fails.
        budget_s: No run of a phase begins after this; None for what one run of both may take.
        variables: What the job's command is told; see `brctl/docs/jobs.md`.
    """

    deadline_s: float
    repetitions: int = 1
    budget_s: float | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


def phases_of(job: Job) -> DualPhase:
    """The two rounds for a job as it stands.

    Raises:
        UsageError: It does not say how to replay it, or it cannot be cut into such groups.
    """
    replay_command(job)
    return sharpest_phases(len(job.nodes), span_of(job))


async def replay_job(
    controller: Controller, job: Job, order: ReplayOrder, on_round: OnRound | None = None
) -> Bisection:
    """Both rounds for a stopped job, recorded."""
    nodes = controller.inventory.nodes
    runner = ReplayRunner(controller.transport, nodes, job, order.variables)
    budget_s = 2 * order.deadline_s if order.budget_s is None else order.budget_s
    options = BisectOptions("replay", 0, budget_s, order.deadline_s)

    async def drive(tell: OnRound) -> Bisection:
        return await run_dual_phase(
            job.nodes, phases_of(job), options, runner, controller.now, tell, order.repetitions
        )

    record = SearchRecord(controller.state_dir)
    return (await record_search(job.nodes, runner.name, drive, record, on_round)).result


async def run_dual_phase(
    nodes: tuple[str, ...],
    phases: DualPhase,
    options: BisectOptions,
    runner: GroupRunner,
    clock: Clock,
    on_round: Callable[[RoundReport], None],
    repetitions: int = 1,
) -> Bisection:
    """Both phases, whatever the first one says; each again until a group of it fails.

    Where the failing groups have several machines in common, further rounds part those.
    """
    search = _Phases(nodes, phases, options, runner, clock, on_round, repetitions, clock())
    try:
        await search.run()
    finally:
        await runner.close()
    reports, began = search.reports, search.started_at
    return Bisection(
        f"B-{began:%Y%m%dT%H%M%S%f}"[:-3], began, search.elapsed_s(), nodes, options.op, 0,
        repetitions, options.budget_s, 0, runner.name, tuple(reports),
        conclude_phases(nodes, phases, reports), search.ended, unexplained=False,
    )  # fmt: skip


@dataclass(slots=True)
class _Phases:
    """One search while it runs; `reports` are judged anew where not all digests are one."""

    nodes: tuple[str, ...]
    phases: DualPhase
    options: BisectOptions
    runner: GroupRunner
    clock: Clock
    on_round: Callable[[RoundReport], None]
    repetitions: int
    started_at: datetime
    reports: list[RoundReport] = field(default_factory=list)
    _told: set[tuple[int, str, str]] = field(default_factory=set)
    ended: str = "settled"

    def elapsed_s(self) -> float:
        return (self.clock() - self.started_at).total_seconds()

    async def run(self) -> None:
        number = 0
        while number < 2 * self._wanted():
            number += 1
            if is_settled(self.reports, number):
                continue
            if not self._has_time():
                return
            groups = self.phases.horizontal() if number % 2 else self.phases.vertical()
            await self._replay(number, Stage.SCREEN, groups)
        await self._part(number)
        await self._confirm()

    async def _part(self, number: int) -> None:
        """Where one group of each phase failed and they have several machines in common."""
        for more in range(1, self.repetitions * self.phases.cardinality):
            suspects = suspects_of(self.nodes, self.phases, self.reports)
            one_by_one = all(len(places) == 1 for places in grid(self.reports))
            if not one_by_one or len(suspects) < 2 or not self._has_time():
                return
            await self._replay(number + more, Stage.ISOLATE, self.phases.parted(suspects))

    async def _confirm(self) -> None:
        """Of whom digests accuse, until chance is ruled out: sound replays may stray as well."""
        for more in range(max(2 * self.repetitions, _LEAST_CONFIRMING)):
            suspect = one_suspect(self.nodes, self.phases, self.reports)
            doubtful = suspect and CHANCE < chance_of(suspect, self.nodes, self.reports) < math.inf
            if not doubtful or not self._has_time():
                return
            groups = self.phases.vertical() if more % 2 else self.phases.horizontal()
            await self._replay(self.reports[-1].number + 1, Stage.ISOLATE, groups)

    def _wanted(self) -> int:
        """Repetitions of each phase: two at least where one says nothing yet of a group."""
        results = [result for report in self.reports for result in report.results]
        apart = ROUNDS_TO_TELL_APART if any(r.apart for r in results) else 0
        badly = BAD_ENDS if any(map(ended_badly, results)) else 0
        return max(self.repetitions, apart, badly)

    def _has_time(self) -> bool:
        over = bool(self.reports) and self.elapsed_s() >= self.options.budget_s
        self.ended = "budget" if over else self.ended
        return not over

    async def _replay(self, number: int, stage: Stage, groups: tuple[Group, ...]) -> None:
        began_s = self.elapsed_s()
        order = RoundOrder(number, self.options.op, 0, 1, self._named(groups), self._deadline_s())
        answer = await self.runner.run(order)
        seconds = self.elapsed_s() - began_s
        report = RoundReport(
            number, stage, order.groups, answer.results, seconds, (), answer.notes
        )  # fmt: skip
        self.reports.append(report)
        pairs = zip(report.groups, report.results, strict=True)
        self._told |= {(len(group), r.kind, d) for group, r in pairs for d in r.digests if d}
        if len(self._told) > 1:
            self.reports = judge_reports(self.reports)
        self.on_round(self.reports[-1])
        self.ended = answer.problem or self.ended

    def _named(self, groups: tuple[Group, ...]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(self.nodes[x] for x in group) for group in groups)

    def _deadline_s(self) -> float:
        """A replay that hangs, where others ended long before, must not eat the budget."""
        left_s = max(_LEAST_ROUND_S, self.options.budget_s - self.elapsed_s())
        took = [report.seconds for report in self.reports if took_its_time(report)]
        usual_s = max(_LEAST_ROUND_S, _TIMES_USUAL * max(took)) if took else math.inf
        return min(self.options.round_deadline_s, left_s, usual_s)
