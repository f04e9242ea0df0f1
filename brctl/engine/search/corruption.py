"""Find the machine of a stopped job that computes wrongly: the cheap ways first, replays last."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from brctl.engine.controller.wiring import Controller
from brctl.engine.search.replay_phases import ReplayOrder, replay_job
from brctl.engine.sweeps.burnin import BurninPlan, burn_in
from brctl.model.errors import UsageError
from brctl.model.jobs.job import Job
from brctl.model.localisation import Bisection, FaultKind, RoundReport, Stage
from brctl.model.nodeset import fold
from brctl.model.sweeps.burnin import Burnin, BurninState
from brctl.model.sweeps.corruption import CorruptionOrder, CorruptionSearch, Method, MethodReport
from brctl.model.units import describe_duration

CHECKS: Mapping[Method, str] = {
    Method.PRODUCTS: "gpu.gemm",
    Method.REFERENCE: "numerics.minigpt",
}
_ANY_LEVEL = 4
_TELL_EVERY_S = 30.0

Tell = Callable[[str], None]


class _Progress:
    """What one method is at, told now and then: each line is one in the run's journal."""

    def __init__(self, controller: Controller, tell: Tell) -> None:
        self._controller = controller
        self._tell = tell
        self._began_at = self._told_at = controller.now()

    def say(self, text: str) -> None:
        now = self._controller.now()
        if (now - self._told_at).total_seconds() >= _TELL_EVERY_S:
            self._told_at = now
            self._tell(text.format(describe_duration((now - self._began_at).total_seconds())))


@dataclass(slots=True)
class _Methods:
    controller: Controller
    job: Job
    order: CorruptionOrder
    tell: Tell

    async def run(self) -> CorruptionSearch:
        started_at = self.controller.now()
        if self.order.not_replayed:
            self.tell(self.order.not_replayed)
        reports: list[MethodReport] = []
        for method, repetitions in planned(self.order):
            spent_s = (self.controller.now() - started_at).total_seconds()
            left_s = self.order.budget_s - spent_s
            if left_s <= 0:
                return CorruptionSearch(self.order, tuple(reports), out_of_budget=True)
            asked = self._asked(method, reports)
            self.tell(f"{method} on {fold(asked)}, {describe_duration(left_s)} left")
            reports.append(await self._report(method, asked, left_s, repetitions))
            if reports[-1].everywhere or not set(self.job.nodes).isdisjoint(reports[-1].wrong):
                break
        short = any(
            r.repetitions < n
            for r, (_, n) in zip(reports, planned(self.order), strict=False)
            if not r.wrong
        )
        over = (self.controller.now() - started_at).total_seconds() >= self.order.budget_s
        return CorruptionSearch(self.order, tuple(reports), out_of_budget=short and over)

    def _asked(self, method: Method, reports: Sequence[MethodReport]) -> tuple[str, ...]:
        """The job's nodes, and the references of which no method before said that they err."""
        wrong = {node for report in reports for node in report.wrong}
        others = [n for n in self.order.references if n not in wrong] if method in CHECKS else ()
        return tuple(dict.fromkeys((*self.job.nodes, *others)))

    async def _report(
        self, method: Method, asked: tuple[str, ...], left_s: float, repetitions: int
    ) -> MethodReport:
        if method not in CHECKS:
            return await self._replay(left_s, repetitions)
        plan = BurninPlan(
            asked, _ANY_LEVEL, left_s, stop_on=(), beside_job=True,
            only=CHECKS[method], repetitions=repetitions, until_wrong=self.job.nodes,
        )  # fmt: skip
        progress = _Progress(self.controller, self.tell)

        def tell(burnin: Burnin) -> None:
            fewest = min((node.repetitions for node in burnin.nodes), default=0)
            progress.say(f"{method}: {fewest} of {repetitions} on each, after {{}}")

        return report_of_burnin(method, await burn_in(self.controller, plan, tell))

    async def _replay(self, left_s: float, repetitions: int) -> MethodReport:
        began_at = self.controller.now()
        order = ReplayOrder(
            min(left_s, self.order.deadline_s), repetitions, left_s, self.order.variables
        )
        progress = _Progress(self.controller, self.tell)

        def tell(report: RoundReport) -> None:
            failed = sum(bool(result.failed) for result in report.results)
            progress.say(f"replay: round {report.number}, {failed} groups failed, after {{}}")

        try:
            found = await replay_job(self.controller, self.job, order, tell)
        except UsageError as exc:
            return MethodReport(Method.REPLAY, 0.0, 0, why=f"not done: {exc}")
        seconds = (self.controller.now() - began_at).total_seconds()
        return report_of_replay(found, seconds)


def planned(order: CorruptionOrder) -> tuple[tuple[Method, int], ...]:
    """The methods in order, each with how often it computes."""
    replays = max(order.replays, order.repetitions)
    rest = tuple(
        (method, replays if method is Method.REPLAY else order.repetitions) for method in Method
    )
    return ((Method.REPLAY, 1), *rest) if order.replay_first else rest


async def locate_corruption(
    controller: Controller, job: Job, order: CorruptionOrder, tell: Tell = lambda text: None
) -> CorruptionSearch:
    """Every method in turn, until one names a node of the job, or that it is none, or time is up.

    A reference that computes wrongly is named as well, and asked no more.

    The job must stand: nodes are loaded as if they were idle.
    """
    return await _Methods(controller, job, order, tell).run()


def report_of_burnin(method: Method, burnin: Burnin) -> MethodReport:
    """Who computed wrongly; whoever came to no end says nothing of itself, good or bad."""
    wrong = tuple(node.node for node in burnin.nodes if node.computed_wrongly)
    clean = [node for node in burnin.nodes if node.state is BurninState.PASSED]
    unmeasured = {
        node.node: node.reason or "no result"
        for node in burnin.nodes
        if node.node not in wrong and (node not in clean or not node.repetitions)
    }
    done = [node.repetitions for node in burnin.nodes if node.node not in unmeasured]
    return MethodReport(method, burnin.seconds, min(done, default=0), wrong, (), unmeasured)


def report_of_replay(found: Bisection, seconds: float) -> MethodReport:
    """Whom both phases convict, who is left undecided, or that no machine is at fault."""
    findings = found.conclusion.findings
    named = [f for f in findings if f.kind is FaultKind.NODE]
    wrong = tuple(n for f in named for n in f.members)
    undecided = tuple(n for f in findings if f.kind is FaultKind.UNDECIDABLE for n in f.members)
    repetitions = (sum(r.stage is Stage.SCREEN for r in found.rounds) + 1) // 2
    return MethodReport(
        Method.REPLAY, seconds, repetitions, wrong, undecided, _in_no_measured_group(found),
        everywhere=any(f.kind is FaultKind.JOB for f in findings),
        by_results=all(found.computed_wrongly(f) for f in named),
        why="; ".join(dict.fromkeys(f.why for f in findings if f.why)),
    )  # fmt: skip


def _in_no_measured_group(found: Bisection) -> Mapping[str, str]:
    measured = {
        node
        for report in found.rounds
        for group, result in zip(report.groups, report.results, strict=True)
        if result.failed is not None or result.apart
        for node in group
    }
    missing = [node for node in found.nodes if node not in measured]
    return dict.fromkeys(missing if found.rounds else (), "no group with it came to an end")
