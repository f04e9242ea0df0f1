"""Run the paper's two phases and say what they leave: one machine, a grid of them, or nothing."""

from collections.abc import Callable

from brctl.engine.controller.wiring import Controller
from brctl.engine.search.bisect import BisectOptions, Clock
from brctl.engine.search.group_runner import GroupRunner, RoundOrder
from brctl.engine.search.recorded import OnRound, SearchRecord, record_search
from brctl.engine.search.replay_runner import ReplayRunner, replay_command
from brctl.localise.problem import Group
from brctl.localise.replay import DualPhase, dual_phase, span_of
from brctl.model.jobs.job import Job
from brctl.model.localisation import (
    Bisection,
    Conclusion,
    Exclusion,
    FaultKind,
    Finding,
    RoundReport,
    Stage,
)

_ONE_OF_ONE = 0.9
"""The paper asks for no confirmation; two failures of one machine are taken for that much."""


def phases_of(job: Job) -> DualPhase:
    """The two rounds for a job as it stands.

    Raises:
        UsageError: It does not say how to replay it, or it cannot be cut into such groups.
    """
    replay_command(job)
    return dual_phase(len(job.nodes), span_of(job))


async def replay_job(controller: Controller, job: Job, deadline_s: float) -> Bisection:
    """Both rounds for a stopped job, recorded."""
    runner = ReplayRunner(controller.transport, controller.inventory.nodes, job)
    options = BisectOptions("replay", 0, 2 * deadline_s, deadline_s)

    async def drive(tell: OnRound) -> Bisection:
        return await run_dual_phase(
            job.nodes, phases_of(job), options, runner, controller.now, tell
        )

    record = SearchRecord(controller.state_dir)
    return (await record_search(job.nodes, runner.name, drive, record)).result


async def run_dual_phase(
    nodes: tuple[str, ...],
    phases: DualPhase,
    options: BisectOptions,
    runner: GroupRunner,
    clock: Clock,
    on_round: Callable[[RoundReport], None],
) -> Bisection:
    """Two rounds, whatever the first one says; no retest, no confirmation."""
    started_at = clock()
    reports: list[RoundReport] = []
    ended = "settled"
    try:
        for number, groups in enumerate((phases.horizontal(), phases.vertical()), 1):
            began = clock()
            order = _order(number, groups, nodes, options)
            answer = await runner.run(order)
            seconds = (clock() - began).total_seconds()
            report = RoundReport(
                number, Stage.SCREEN, order.groups, answer.results, seconds, (), answer.notes
            )
            reports.append(report)
            on_round(report)
            ended = answer.problem or ended
    finally:
        await runner.close()
    conclusion = conclude_phases(nodes, phases, reports)
    return Bisection(
        f"B-{started_at:%Y%m%dT%H%M%S%f}"[:-3], started_at,
        (clock() - started_at).total_seconds(), nodes, options.op, 0, 1, options.budget_s, 0,
        runner.name, tuple(reports), conclusion, ended, unexplained=False,
    )  # fmt: skip


def _order(
    number: int, groups: tuple[Group, ...], nodes: tuple[str, ...], options: BisectOptions
) -> RoundOrder:
    named = tuple(tuple(nodes[x] for x in group) for group in groups)
    return RoundOrder(number, options.op, 0, 1, named, options.round_deadline_s)


def conclude_phases(
    nodes: tuple[str, ...], phases: DualPhase, reports: list[RoundReport]
) -> Conclusion:
    """The machines in failing groups of both phases; several are a grid, and nobody is sure."""
    failing = [[i for i, r in enumerate(report.results) if r.failed] for report in reports]
    unmeasured = any(r.failed is None for report in reports for r in report.results)
    rows, columns = failing if len(failing) == 2 else ([], [])
    suspects = tuple(nodes[x] for x in phases.suspects(rows, columns))
    tests = tuple((n, i) for n, where in enumerate(failing, 1) for i in where)
    if len(suspects) == 1 and len(rows) == len(columns) == 1:
        finding = Finding(FaultKind.NODE, suspects, _ONE_OF_ONE, tests, 0, "failed in both phases")
    elif suspects:
        chance = max(len(rows), len(columns)) / len(suspects)
        why = f"{len(rows)} x {len(columns)} failing groups meet in these; some are innocent"
        finding = Finding(FaultKind.UNDECIDABLE, suspects, chance, tests, 0, why)
    elif unmeasured or any(failing):
        why = "the phases do not agree, or groups were not measured"
        finding = Finding(FaultKind.UNDECIDABLE, (), 0.0, tests, 0, why)
    else:
        finding = Finding(FaultKind.NONE, (), 0.0, why="no group failed")
    count = sum(len(group) for report in reports for group in report.groups)
    clean = 0 if any(failing) or unmeasured else len(reports)
    rate = 1.0 - 0.01 ** (1.0 / clean) if clean else 1.0
    return Conclusion((finding,), Exclusion(rate, 0.99, clean), len(reports), count, complete=True)
