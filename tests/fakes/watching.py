"""A made-up world for a watcher: a clock, nodes that say what a test says, hands that only note."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from brctl.engine.application.watching.contract import Attempt, Examined, Said
from brctl.model.fault import Action, FaultClass, Origin
from brctl.model.jobs.job import Job
from brctl.model.sweeps.report import CheckResult, Measurement, ProbeStatus, Value
from brctl.model.verdict import Suspect, Verdict
from brctl.model.watch.policy import WatchPolicy
from brctl.model.watch.state import MassEvent, WatchDecision
from brctl.watch.gates import GateFacts, WatchedVerdict
from tests.fakes.nodes import NOW


class FakeClock:
    """A wall clock and a monotonic one, that a test moves."""

    def __init__(self) -> None:
        self.now, self.seconds = NOW, 1000.0

    def go(self, seconds: float, *, jump: timedelta = timedelta()) -> None:
        """Let time pass; with `jump` somebody also set the wall clock."""
        self.seconds += seconds
        self.now += timedelta(seconds=seconds) + jump


def measured(check: str, subject: str = "", **values: Value) -> CheckResult:
    """A check's answer; `__` in a name stands for a dot."""
    rows = tuple(Measurement(k.replace("__", "."), subject, v) for k, v in values.items())
    return CheckResult(check, ProbeStatus.MEASURED, rows)


class FakeNodes:
    """What nodes say from one tick to the next."""

    def __init__(self, names: Sequence[str]) -> None:
        self.looks = 0
        self.fresh: dict[str, dict[str, CheckResult]] = {name: {} for name in names}
        self.away: dict[str, float] = {}
        self.queued: frozenset[str] = frozenset()
        self.unasked: frozenset[str] = frozenset()

    def say(self, node: str, result: CheckResult) -> None:
        self.fresh[node][result.check] = result

    def said(self) -> Mapping[str, Said]:
        self.looks += 1
        looks = {2.0: self.looks, 10.0: self.looks, 30.0: self.looks}
        mute = self.away.keys() | self.unasked
        found = {n: Said(fresh, looks) for n, fresh in self.fresh.items() if n not in mute}
        self.fresh = {name: {} for name in self.fresh}
        return found

    def silent_s(self, after_s: float) -> Mapping[str, float]:
        return {node: seconds for node, seconds in self.away.items() if seconds > after_s}

    def waiting(self) -> frozenset[str]:
        return self.queued

    def stale(self) -> frozenset[str]:
        return self.unasked


class FakeHands:
    """Finds what a test says, and notes what it was asked to do.

    Attributes:
        heals: The fault is gone when it is diagnosed.
        refuses: `fix` is refused by its guards.
        hears: Somebody hears of a page.
        failing: What the next diagnoses fail with, in order.
    """

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.examined: list[tuple[str, tuple[str, ...]]] = []
        self.pages: list[str] = []
        self.events: list[MassEvent] = []
        self.fixes: list[tuple[str, int]] = []
        self.working: dict[str, str] = {}
        self.people: dict[str, datetime] = {}
        self.heals = self.refuses = False
        self.hears = True
        self.failing: list[Exception] = []
        self.spares: int | None = 9
        self.known = 128

    async def examine(self, job: Job | None, nodes: Sequence[str]) -> Examined:
        about = job.name if job else ""
        self.examined.append((about, tuple(nodes)))
        if self.failing:
            raise self.failing.pop(0)
        verdict = a_verdict(
            f"V-{len(self.examined)}", () if self.heals else tuple(nodes)[:1], about
        )
        watched = WatchedVerdict(
            verdict.id, verdict.fault, verdict.confidence, verdict.nodes, about,
            "swap-and-resume", takes_nodes=True, step=100,
        )  # fmt: skip
        return Examined(self._clock.now, (verdict,), (watched,))

    def busy_with(self, job: str) -> str:
        return self.working.get(job, "")

    async def facts(self, verdict: WatchedVerdict, policy: WatchPolicy) -> GateFacts:
        return GateFacts(self._clock.now, self.known, self.spares)

    def touched(self, since: datetime) -> Mapping[str, datetime]:
        return {node: at for node, at in self.people.items() if at >= since}

    async def page(self, verdict: Verdict, decision: WatchDecision) -> Attempt:
        self.pages.append(verdict.id)
        return Attempt(self.hears, f"brctl fix {verdict.id} --yes")

    async def tell(self, event: MassEvent) -> Attempt:
        self.events.append(event)
        return Attempt(self.hears, "a sink")

    async def start_fix(self, verdict: Verdict, token: int) -> Attempt:
        self.fixes.append((verdict.id, token))
        return Attempt(not self.refuses, "exit 5: a guard said no" if self.refuses else "R-0001")


def a_verdict(name: str, nodes: tuple[str, ...], job: str) -> Verdict:
    """Sure of a lost GPU on the nodes; no fault where there are none."""
    fault = FaultClass.GPU_LOST if nodes else FaultClass.NO_FAULT
    return Verdict(
        id=name, fault=fault, title="a GPU fell off the bus",
        suspects=tuple(map(Suspect, nodes)), origin=Origin.INFRA, probability=0.97, evidence=(),
        alternatives=(), ruled_out=(), not_checked=(), decided_at=NOW, job=job,
        action=Action.SWAP, playbook="swap-and-resume",
    )  # fmt: skip
