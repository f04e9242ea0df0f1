"""Burn in nodes: heavy checks in rounds, health looked at in between, the sick taken out."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from brctl.engine.controller.readonly import refuse_readonly
from brctl.engine.controller.wiring import Controller
from brctl.engine.sweeps import burnin_store
from brctl.engine.sweeps.busy_nodes import nodes_of_jobs, refuse_busy
from brctl.evidence.assess import Assessment, assess
from brctl.evidence.burnin import COUNTS, not_compared, rate, repetitions_in, stopping
from brctl.evidence.peers import assess_peers
from brctl.library.parameters import fill_parameters
from brctl.model.command import Outcome
from brctl.model.errors import UsageError
from brctl.model.evidence import Evidence, Weight
from brctl.model.inventory import Node
from brctl.model.sweeps.burnin import Burnin, BurninState, NodeBurnin
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.report import NodeReport
from brctl.sweep.stream import sweep

PROFILE = "burnin"
WATCHED = ("gpu.devices", "gpu.xid", "gpu.ecc", "gpu.clocks")
"""Level-1 checks that look at the hardware before the load of every round, and after the last."""

ROUND_S = 20.0
"""Seconds of one product run; between rounds the hardware is looked at, so this bounds how long a
failing GPU is kept under load."""

_HINT = "swap the nodes out first, or say --beside-job"

ROUND_REPETITIONS = 64
"""Most of one round, so that a device that is wrong every time is found in the first."""

_LARGE = {"size": 4096, "depth": 65536, "bytes": 1 << 30}
"""On a GPU: products deep enough that checking every result costs about a percent."""


@dataclass(frozen=True, slots=True)
class BurninPlan:
    """What to do.

    Attributes:
        stop_on: Words of `evidence.burnin.STOP_ON`.
        beside_job: Load nodes although ranks of a job run on them.
        only: The one heavy check to run; "" for all of the level.
        repetitions: Of that check on every node, after which it ends before its time; 0 for time
            alone.
        until_wrong: End after the round in which one of these nodes computed wrongly.
    """

    nodes: tuple[str, ...]
    level: int
    duration_s: float
    stop_on: tuple[str, ...] = ("xid", "ecc", "thermal")
    beside_job: bool = False
    only: str = ""
    repetitions: int = 0
    until_wrong: tuple[str, ...] = ()


def choose(checks: Mapping[str, Check], level: int, only: str = "") -> dict[str, Check]:
    """The heavy checks up to a level, and those that watch the hardware meanwhile."""
    heavy = {
        n: c for n, c in checks.items()
        if PROFILE in c.profiles and c.level <= level and only in ("", n)
    }  # fmt: skip
    if not heavy:
        raise UsageError(f"no check {only or f'of the profile {PROFILE!r}'} up to level {level}")
    return {name: checks[name] for name in WATCHED if name in checks} | heavy


class _Burning:
    """The state of one burn-in while it runs."""

    def __init__(self, controller: Controller, plan: BurninPlan) -> None:
        self._controller = controller
        self._plan = plan
        self._checks = choose(controller.checks, plan.level, plan.only)
        self._started_at: datetime = controller.now()
        self._id = f"B-{self._started_at:%Y%m%dT%H%M%S}"
        self._nodes = {n: NodeBurnin(n, BurninState.RUNNING) for n in plan.nodes}
        self._known: dict[str, tuple[Evidence, ...]] = {}
        self._last: dict[str, NodeReport] = {}

    def result(self) -> Burnin:
        """What is known now."""
        return Burnin(
            id=self._id,
            level=self._plan.level,
            checks=tuple(self._checks),
            started_at=self._started_at,
            duration_s=self._plan.duration_s,
            seconds=self._elapsed_s(),
            pid=os.getpid(),
            nodes=tuple(self._nodes.values()),
        )

    def _elapsed_s(self) -> float:
        return (self._controller.now() - self._started_at).total_seconds()

    def running(self) -> tuple[str, ...]:
        return tuple(n.node for n in self._nodes.values() if n.state is BurninState.RUNNING)

    def wants_more(self) -> bool:
        """Whether another round is due; there is always a first."""
        if burnin_store.is_asked_to_stop(self._controller.state_dir, self._id):
            self.close(BurninState.STOPPED, "somebody said stop")
        first = not any(node.rounds for node in self._nodes.values())
        enough = 0 < self._plan.repetitions <= self._fewest()
        enough = enough or any(self._nodes[n].computed_wrongly for n in self._plan.until_wrong)
        in_time = self._elapsed_s() < self._plan.duration_s and not enough
        return bool(self.running()) and (first or in_time)

    def _fewest(self) -> int:
        """Repetitions that every node still running has behind it."""
        return min((self._nodes[name].repetitions for name in self.running()), default=0)

    async def observe(self) -> None:
        """Remember what speaks against a node before it is loaded."""
        for report in await self._ask(self._watching()):
            found = assess(report, self._watching())
            self._known[report.node] = tuple(
                e for e in found.evidence if e.weight is Weight.CONVICTS
            )

    async def round(self) -> None:
        """Load every node once and judge it."""
        for report in await self._ask(self._checks):
            self._judge(report, assess(report, self._checks, self._last.get(report.node)))
            self._last[report.node] = report
        self._compare()

    async def finish(self) -> None:
        """Look once more after the last load, compare the fleet, and pass who is left."""
        for report in await self._ask(self._watching()):
            self._judge(report, assess(report, self._watching()), counts=False)
        self._rate()
        self.close(BurninState.PASSED, "")

    def close(self, state: BurninState, reason: str) -> None:
        """End every node that still runs."""
        for name in self.running():
            self._nodes[name] = replace(self._nodes[name], state=state, reason=reason)

    def _watching(self) -> dict[str, Check]:
        return {name: check for name, check in self._checks.items() if name in WATCHED}

    async def _ask(self, checks: Mapping[str, Check]) -> list[NodeReport]:
        controller, nodes = self._controller, self._controller.inventory.pick(self.running())
        if not nodes:
            return []
        stream = sweep(
            controller.transport,
            nodes,
            checks,
            self._parameters,
            limit=controller.settings.ssh.fanout,
            root=controller.settings.ssh.root,
            now=controller.now,
        )
        async with aclosing(stream):
            return [report async for report in stream]

    def _parameters(self, node: Node, check: Check) -> Mapping[str, object]:
        filled = fill_parameters(check, node, None)
        if PROFILE not in check.profiles:
            return filled
        left = self._plan.repetitions - self._nodes[node.name].repetitions
        left_s = self._plan.duration_s - self._elapsed_s()
        if self._plan.repetitions and check.name in COUNTS:
            filled |= {"seconds": 0.0, "least": max(1, min(left, ROUND_REPETITIONS))}
        else:
            filled["seconds"] = max(1.0, min(ROUND_S, left_s))
        if filled.get("device") != "cpu":
            filled |= {k: v for k, v in _LARGE.items() if k in check.parameters}
        return filled

    def _judge(self, report: NodeReport, found: Assessment, *, counts: bool = True) -> None:
        node = self._nodes[report.node]
        out = stopping(found, self._plan.stop_on, self._known.get(report.node, ()))
        answered = report.outcome is Outcome.ANSWERED
        node = replace(
            node, gaps=found.gaps, rounds=node.rounds + (answered and counts),
            repetitions=node.repetitions + repetitions_in(report, self._plan.only),
        )  # fmt: skip
        if out:
            node = replace(node, state=BurninState.FAILED, evidence=out, reason=out[0].text)
        elif not answered:
            reason = report.why_silent
            node = replace(node, state=BurninState.UNFINISHED, reason=reason)
        elif counts and found.gaps and not self._measured_load(report):
            node = replace(node, state=BurninState.UNFINISHED, reason=found.gaps[0].why)
        self._nodes[report.node] = node

    def _measured_load(self, report: NodeReport) -> bool:
        """Whether any heavy check gave a reading; without one nothing was burned in."""
        heavy = set(self._checks) - set(WATCHED)
        return any(r.measurements for r in report.results if r.check in heavy)

    def _models(self) -> Mapping[str, str]:
        nodes = self._controller.inventory.nodes.values()
        return {node.name: node.labels.get("gpu_model", "") for node in nodes}

    def _rate(self) -> None:
        """Place every device in the fleet by how fast it was."""
        models = self._models()
        ratings = rate(list(self._last.values()), self._checks, lambda node: models[node])
        for name, found in ratings.items():
            self._nodes[name] = replace(self._nodes[name], ratings=found)

    def _compare(self) -> None:
        """Convict who computed other bits than the rest; who cannot be compared has not passed."""
        models, reports = self._models(), list(self._last.values())
        found = assess_peers(reports, lambda node: models[node])
        for item in found.evidence:
            if item.weight is Weight.CONVICTS:
                self._end(item.subject.node, BurninState.FAILED, item.text, (item,))
        for node, why in not_compared(reports, found).items():
            self._end(node, BurninState.UNFINISHED, why)

    def _end(
        self, name: str, state: BurninState, reason: str, evidence: tuple[Evidence, ...] = ()
    ) -> None:
        """End one node, unless something else did."""
        node = self._nodes[name]
        if node.state is BurninState.RUNNING:
            self._nodes[name] = replace(node, state=state, reason=reason, evidence=evidence)


async def burn_in(
    controller: Controller,
    plan: BurninPlan,
    on_round: Callable[[Burnin], None] = lambda burnin: None,
) -> Burnin:
    """Carry out a burn-in; the state after every round is on disk before the next begins.

    Raises:
        GuardError: A job runs on one of the nodes.
        UsageError: No check fits the level.
    """
    refuse_readonly(controller.settings, "a burn-in")
    if not plan.beside_job:
        refuse_busy(nodes_of_jobs(controller), plan.nodes, hint=_HINT)
    burning = _Burning(controller, plan)
    try:
        await burning.observe()
        while burning.wants_more():
            await burning.round()
            _tell(controller, burning, on_round)
        await burning.finish()
    finally:
        burning.close(BurninState.STOPPED, "interrupted")
        last = _tell(controller, burning, on_round)
    return last


def _tell(controller: Controller, burning: _Burning, on_round: Callable[[Burnin], None]) -> Burnin:
    burnin = burning.result()
    burnin_store.save(controller.state_dir, burnin)
    on_round(burnin)
    return burnin


def convicted_at(burnins: Iterable[Burnin]) -> dict[str, datetime]:
    """When the newest burn-in that found wrong results on a node ended, by node."""
    ended = sorted(
        (burnin.started_at + timedelta(seconds=burnin.seconds), node.node)
        for burnin in burnins
        for node in burnin.nodes
        if node.computed_wrongly
    )
    return {node: at for at, node in ended}


def history_of(burnins: Sequence[Burnin], node: str) -> tuple[tuple[Burnin, NodeBurnin], ...]:
    """What every burn-in said of one node, newest first."""
    return tuple((b, n) for b in burnins for n in b.nodes if n.node == node)
