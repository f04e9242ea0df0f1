"""Drive a localisation: plan a round, run it, learn, until it is not worth another one."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from brctl.engine.search.group_runner import GroupRunner, RoundOrder
from brctl.localise.problem import RoundPlan, SearchProblem
from brctl.model.localisation import (
    Bisection,
    Conclusion,
    FaultKind,
    Finding,
    GroupResult,
    RoundReport,
)

if TYPE_CHECKING:
    from brctl.localise.strategy import Localiser

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class BisectOptions:
    """How the collectives are run and for how long.

    Attributes:
        budget_s: No round starts after this, and none may run beyond it.
        round_deadline_s: The longest a single round may take.
    """

    op: str = "all_reduce"
    size_bytes: int = 1 << 30
    budget_s: float = 600.0
    round_deadline_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Preflight:
    """What was found before any group ran.

    Attributes:
        nodes: The nodes that can take part.
        findings: Faults inside nodes, and nodes that do not answer at all.
    """

    nodes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


_NOTHING_BEFORE = Preflight()


@dataclass(slots=True)
class _Search:
    localiser: "Localiser"
    options: BisectOptions
    runner: GroupRunner
    clock: Clock
    started_at: datetime
    on_round: Callable[[RoundReport], None]
    rounds: list[RoundReport] = field(default_factory=list)

    def elapsed_s(self) -> float:
        return (self.clock() - self.started_at).total_seconds()

    async def run(self) -> str:
        """Rounds until the search settles or something ends it; returns what did."""
        while (plan := self.localiser.plan()) is not None:
            left = self.options.budget_s - self.elapsed_s()
            if left <= 0:
                return "budget"
            problem = await self._round(plan, min(left, self.options.round_deadline_s))
            if problem:
                return "budget" if self.elapsed_s() >= self.options.budget_s else problem
        return "settled"

    async def _round(self, plan: RoundPlan, deadline_s: float) -> str:
        names = self.localiser.problem.nodes
        groups = tuple(tuple(names[i] for i in group) for group in plan.groups)
        order = RoundOrder(
            plan.number,
            self.options.op,
            self.options.size_bytes,
            plan.reps,
            groups,
            deadline_s,
        )
        began = self.clock()
        answer = await self.runner.run(order)
        results, doubt = _credible(answer.results)
        problem = answer.problem or doubt
        self.localiser.absorb(plan, results)
        report = RoundReport(
            plan.number,
            plan.stage,
            groups,
            results,
            (self.clock() - began).total_seconds(),
            _suspects(self.localiser),
            answer.notes + ((doubt,) if doubt else ()),
        )
        self.rounds.append(report)
        self.on_round(report)
        return problem


def _credible(results: tuple[GroupResult, ...]) -> tuple[tuple[GroupResult, ...], str]:
    """Silence of most groups is the runner's or the fabric's, and says nothing about nodes."""
    silent = sum(result.silent for result in results)
    if len(results) < 4 or silent * 2 <= len(results):
        return results, ""
    why = f"{silent} of {len(results)} groups did not answer: the cause is common to them"
    kept = tuple(replace(r, failed=None) if r.silent else r for r in results)
    return kept, why


def _suspects(localiser: "Localiser") -> tuple[tuple[str, float], ...]:
    """The likeliest nodes so far, for the live view."""
    if localiser.failing is None or not localiser.ledger.measured:
        return ()
    chance = localiser.suspicion()[: len(localiser.problem.nodes)]
    order = sorted(range(len(chance)), key=lambda v: -float(chance[v]))[:5]
    names = localiser.problem.nodes
    return tuple((names[v], float(chance[v])) for v in order if chance[v] > 0.01)


async def bisect(
    problem: SearchProblem,
    options: BisectOptions,
    runner: GroupRunner,
    clock: Clock,
    on_round: Callable[[RoundReport], None] = lambda report: None,
    before: Preflight = _NOTHING_BEFORE,
) -> Bisection:
    """Search until settled, out of budget, or interrupted; what is known is always returned."""
    # Here, not above: they import numpy, and every run imports this module while few search.
    from brctl.localise.conclude import conclude
    from brctl.localise.strategy import Localiser

    started_at = clock()
    localiser = Localiser(problem)
    search = _Search(localiser, options, runner, clock, started_at, on_round)
    task = asyncio.current_task()
    try:
        ended = await search.run()
    except asyncio.CancelledError:
        # Ctrl-C: uncancel, so that the runner can be closed and the answer written.
        ended = "interrupted"
        if task is not None:
            task.uncancel()
    finally:
        await runner.close()
    conclusion = _with_preflight(conclude(localiser), before)
    return Bisection(
        f"B-{started_at:%Y%m%dT%H%M%S%f}"[:-3],
        started_at,
        search.elapsed_s(),
        problem.nodes,
        options.op,
        options.size_bytes,
        problem.reps,
        options.budget_s,
        problem.seed,
        runner.name,
        tuple(search.rounds),
        conclusion,
        ended,
        _unexplained(search.rounds, conclusion),
        before.notes,
    )


def _with_preflight(conclusion: Conclusion, before: Preflight) -> Conclusion:
    """Findings made before any group ran stand beside the search's own."""
    if not before.findings:
        return conclusion
    own = [f for f in conclusion.findings if f.kind is not FaultKind.NONE]
    return replace(conclusion, findings=(*before.findings, *own))


def _unexplained(rounds: Sequence[RoundReport], conclusion: Conclusion) -> bool:
    explained = {test for finding in conclusion.findings for test in finding.tests}
    named: Mapping[str, None] = dict.fromkeys(
        name for finding in conclusion.findings for name in finding.members
    )
    return any(
        result.failed and (report.number, position) not in explained
        for report in rounds
        for position, result in enumerate(report.results)
        if not any(name in named for name in report.groups[position])
    )
