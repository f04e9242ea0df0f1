"""Run the paper's two phases and say what they leave: one machine, a grid of them, or nothing.

Rounds of odd numbers are the first phase, rounds of even numbers the second. A fault that strikes
now and then is met by running a phase again until one of its groups fails.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from brctl.engine.controller.wiring import Controller
from brctl.engine.search.bisect import BisectOptions, Clock
from brctl.engine.search.group_runner import GroupRunner, RoundOrder
from brctl.engine.search.recorded import OnRound, SearchRecord, record_search
from brctl.engine.search.replay_runner import ReplayRunner, replay_command
from brctl.localise.problem import Group
from brctl.localise.repetitions import least_chance
from brctl.localise.replay import DualPhase, sharpest_phases, span_of
from brctl.localise.replay_digests import (
    CHANCE,
    ROUNDS_TO_TELL_APART,
    chance_of_strays,
    judge_digests,
)
from brctl.model.jobs.job import Job
from brctl.model.localisation import (
    Bisection,
    Conclusion,
    Exclusion,
    FaultKind,
    Finding,
    GroupResult,
    RoundReport,
    Stage,
)

_ONE_OF_ONE = 0.9
"""The paper asks for no confirmation; two failures of one machine are taken for that much."""

_EVERYWHERE = 0.95
"""Several machines that compute wrongly in the same step are rarer than code or data; assumed."""

_MISS = 0.01

BAD_ENDS = 2
"""Runs of a phase in which a group came to no end, after which it is not asked again."""

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
            if _is_settled(self.reports, number):
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
            suspects = _suspects_of(self.nodes, self.phases, self.reports)
            one_by_one = all(len(places) == 1 for places in _grid(self.reports))
            if not one_by_one or len(suspects) < 2 or not self._has_time():
                return
            await self._replay(number + more, Stage.ISOLATE, self.phases.parted(suspects))

    async def _confirm(self) -> None:
        """Of whom digests accuse, until chance is ruled out: sound replays may stray as well."""
        for more in range(max(2 * self.repetitions, _LEAST_CONFIRMING)):
            suspect = _one_suspect(self.nodes, self.phases, self.reports)
            doubtful = suspect and CHANCE < _chance(suspect, self.nodes, self.reports) < math.inf
            if not doubtful or not self._has_time():
                return
            groups = self.phases.vertical() if more % 2 else self.phases.horizontal()
            await self._replay(self.reports[-1].number + 1, Stage.ISOLATE, groups)

    def _wanted(self) -> int:
        """Repetitions of each phase: two at least where one says nothing yet of a group."""
        results = [result for report in self.reports for result in report.results]
        apart = ROUNDS_TO_TELL_APART if any(r.apart for r in results) else 0
        badly = BAD_ENDS if any(map(_ended_badly, results)) else 0
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
        took = [report.seconds for report in self.reports if _took_its_time(report)]
        usual_s = max(_LEAST_ROUND_S, _TIMES_USUAL * max(took)) if took else math.inf
        return min(self.options.round_deadline_s, left_s, usual_s)


def judge_reports(reports: Sequence[RoundReport]) -> list[RoundReport]:
    """Every round in the light of the digests of all."""
    judged = judge_digests([(report.groups, report.results) for report in reports])
    pairs = zip(reports, judged, strict=True)
    return [replace(report, results=results) for report, results in pairs]


def _is_settled(reports: Sequence[RoundReport], number: int) -> bool:
    """Whether another run of this phase would add nothing: a group of it failed, or all of one.

    An end without a result may be the time's, and not the machine's: that is asked for twice.
    """
    own = [report for report in _screen(reports) if (report.number - number) % 2 == 0]
    return bool(_failing(own)) or (number > 2 and _all_in_one(reports))


def _screen(reports: Sequence[RoundReport]) -> list[RoundReport]:
    return [report for report in reports if report.stage is Stage.SCREEN]


def _is_wrong(result: GroupResult) -> bool:
    return bool(result.nonfinite or result.differs)


def _ended_badly(result: GroupResult) -> bool:
    return bool(result.failed) and not _is_wrong(result)


def _took_its_time(report: RoundReport) -> bool:
    """Whether replays ended in it and none was cut off; a round without an answer tells no time."""
    ended = any(any(r.digests) or r.failed is not None for r in report.results)
    return ended and not any(map(_ended_badly, report.results))


def _failing(phase: Sequence[RoundReport], bad_ends: int = BAD_ENDS) -> list[int]:
    """Places of its groups that gave a wrong result, else of those that failed in all its runs."""
    rows = list(zip(*(report.results for report in phase), strict=True))
    wrong = [i for i, row in enumerate(rows) if any(map(_is_wrong, row))]
    always = [i for i, row in enumerate(rows) if all(r.failed for r in row)]
    return wrong or (always if len(phase) >= bad_ends else [])


def _all_in_one(reports: Sequence[RoundReport]) -> bool:
    return any(_all_failed(report) for report in reports)


def _all_failed(report: RoundReport) -> bool:
    """All groups gave wrong results in it, or none came to an end when they were first asked."""
    if len(report.results) < 2 or not all(r.failed for r in report.results):
        return False
    return report.number <= 2 or all(map(_is_wrong, report.results))


def _grid(reports: Sequence[RoundReport]) -> tuple[list[int], list[int]]:
    """Places of the groups that failed in the first phase, and in the second."""
    both = ([r for r in _screen(reports) if r.number % 2 == odd] for odd in (1, 0))
    rows, columns = map(_failing, both)
    return rows, columns


def _suspects_of(
    nodes: tuple[str, ...], phases: DualPhase, reports: Sequence[RoundReport]
) -> tuple[int, ...]:
    """Machines in failing groups of both phases, and of the rounds that parted those."""
    suspects = phases.suspects(*_grid(reports))
    for report in reports:
        failing = _failing([report], bad_ends=1)
        if report.stage is Stage.ISOLATE and len(failing) == 1 and len(suspects) > 1:
            suspects = tuple(x for x in suspects if nodes[x] in report.groups[failing[0]])
    return suspects


def _one_suspect(nodes: tuple[str, ...], phases: DualPhase, reports: Sequence[RoundReport]) -> str:
    """The machine that one failing group of each phase leaves, if it is one."""
    suspects = _suspects_of(nodes, phases, reports)
    one_by_one = all(len(places) == 1 for places in _grid(reports))
    return nodes[suspects[0]] if one_by_one and len(suspects) == 1 else ""


def _chance(node: str, nodes: tuple[str, ...], reports: Sequence[RoundReport]) -> float:
    rounds = [(report.groups, report.results) for report in reports]
    return chance_of_strays(node, len(nodes), rounds)


def _against(node: str, reports: Sequence[RoundReport]) -> tuple[tuple[int, int], ...]:
    """The tests behind a node: wrong results of groups it was in, else their bad ends."""
    failed = [
        (report.number, i, result)
        for report in reports
        for i, result in enumerate(report.results)
        if result.failed and node in report.groups[i]
    ]
    wrong = [each for each in failed if _is_wrong(each[2])]
    return tuple((number, i) for number, i, _ in wrong or failed)


def conclude_phases(
    nodes: tuple[str, ...], phases: DualPhase, reports: Sequence[RoundReport]
) -> Conclusion:
    """The machines in failing groups of both phases; several are a grid, and nobody is sure."""
    rows, columns = _grid(reports)
    tests = tuple((p.number, i) for p in reports for i, r in enumerate(p.results) if r.failed)
    unmeasured = any(r.failed is None for report in reports for r in report.results)
    everywhere = [report for report in reports if _all_failed(report)]
    suspects = tuple(nodes[x] for x in _suspects_of(nodes, phases, reports))
    if everywhere:
        finding = _of_no_machine(everywhere, tests)
    elif suspect := _one_suspect(nodes, phases, reports):
        finding = _of_one(suspect, nodes, reports)
    elif suspects:
        chance = max(len(rows), len(columns)) / len(suspects)
        why = f"{len(rows)} x {len(columns)} failing groups meet in these; some are innocent"
        finding = Finding(FaultKind.UNDECIDABLE, suspects, chance, tests, 0, why)
    elif apart := _apart(reports):
        why = (
            "digests differ between groups and which is right is not known: one of these computes"
            " wrongly, or no two replays are equal"
        )
        finding = Finding(FaultKind.UNDECIDABLE, apart, 1.0 / len(apart), why=why)
    elif unmeasured or rows or columns:
        why = "the phases do not agree, or groups were not measured"
        kinds = {r.kind for report in reports for r in report.results if r.kind}
        if len(kinds) > 1:
            why += f"; digests are compared within one kind of node, and here are {len(kinds)}"
        finding = Finding(FaultKind.UNDECIDABLE, (), 0.0, tests, 0, why)
    else:
        finding = Finding(FaultKind.NONE, (), 0.0, why="no group failed")
    count = sum(len(group) for report in reports for group in report.groups)
    clean = 0 if tests or unmeasured else len(reports)
    exclusion = Exclusion(least_chance(clean, _MISS), 1.0 - _MISS, clean)
    return Conclusion((finding,), exclusion, len(reports), count, complete=True)


def _of_one(suspect: str, nodes: tuple[str, ...], reports: Sequence[RoundReport]) -> Finding:
    against = _against(suspect, reports)
    if _chance(suspect, nodes, reports) > CHANCE:
        why = "digests that differ now and then meet in it, which may be chance: sound replays that"
        why += " are not always equal look the same"
        return Finding(FaultKind.UNDECIDABLE, (suspect,), 1.0 / len(nodes), against, 0, why)
    parted = any(report.stage is Stage.ISOLATE for report in reports)
    why = "alone in every failing group" if parted else "failed in both phases"
    return Finding(FaultKind.NODE, (suspect,), _ONE_OF_ONE, against, 0, why)


def _apart(reports: Sequence[RoundReport]) -> tuple[str, ...]:
    """The machines of all groups that could not be told right from wrong."""
    named = (
        node
        for report in reports
        for group, result in zip(report.groups, report.results, strict=True)
        for node in group
        if result.apart
    )
    return tuple(dict.fromkeys(named))


def _of_no_machine(
    everywhere: Sequence[RoundReport], tests: tuple[tuple[int, int], ...]
) -> Finding:
    """The same steps fail on every machine; whether in numbers, or in that nothing ran at all."""
    if all(r.nonfinite == r.failed for report in everywhere for r in report.results):
        why = (
            "the same steps give no numbers, or the same jump, on every machine: code or data, no"
            " machine"
        )
        return Finding(FaultKind.JOB, (), _EVERYWHERE, tests, 0, why)
    why = "the replay of every group fails: its command or its checkpoint, and no machine"
    return Finding(FaultKind.UNDECIDABLE, (), 0.0, tests, 0, why)
