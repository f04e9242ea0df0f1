"""One look at a job for whoever watches it live: its ranks the slowest first, and its nodes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import floor
from statistics import median

from brctl.evidence.trends import CounterTotals, node_samples
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.jobs.trends import TREND_METRICS
from brctl.model.sweeps.report import NodeReport, ProbeStatus

CHECKS = ("job.ranks", "gpu.clocks", "gpu.ecc", "fabric.eth", "fabric.ibport")
"""All of level 1: none of them costs the job anything."""

LOOKS_APART_S = 5.0
"""So far apart may two answers of one look be (own)."""

SHORTEST_STEP_S = 1e-6
"""A file may claim less: no job makes a million steps a second."""

NUMBERS = tuple(name for name, metric in TREND_METRICS.items() if metric.of_node)


@dataclass(frozen=True, slots=True)
class TopNode:
    """A node of the job.

    Attributes:
        numbers: By the names of its trends; what was not measured is absent.
        age_s: Since its answers were renewed; None where it gave none.
        silent: Why it gives no answer; "" where it does.
        missing: What was asked and not measured, and why.
    """

    node: str
    numbers: Mapping[str, float]
    age_s: float | None
    silent: str = ""
    missing: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TopLook:
    """A job at one moment.

    Attributes:
        ranks: Those that are gone or unknown first, then the slowest.
        nodes: Silent ones first, then the hottest.
        placement_trouble: Why it is not known where the job runs now; "" where it is.
    """

    at: datetime
    status: JobStatus
    ranks: tuple[RankView, ...]
    nodes: tuple[TopNode, ...]
    placement_trouble: str = ""


def top_look(
    status: JobStatus,
    reports: Iterable[NodeReport],
    ages_s: Mapping[str, float],
    silent: Mapping[str, str],
    at: datetime,
    counters: Mapping[str, CounterTotals] | None = None,
) -> TopLook:
    """What the newest answers of a job's nodes show.

    Args:
        status: The job as they describe it.
        reports: Of nodes that answer.
        ages_s: How old each answer is.
        silent: Why the others do not.
        at: The moment.
        counters: Of the looks so far, this one among them; None for a look by itself.
    """
    nodes = [_node(report, ages_s.get(report.node), counters) for report in reports]
    answered = {node.node for node in nodes}
    nodes += [
        TopNode(node, {}, None, silent.get(node) or "no answer yet")
        for node in status.job.nodes
        if node not in answered
    ]
    return TopLook(at, status, tuple(slowest_first(status.ranks)), tuple(_worst_first(nodes)))


def own_s(view: RankView) -> float | None:
    """The part of a step that a rank spends on itself: whom the others wait for has the most."""
    if view.step_s is None or view.wait_s is None:
        return None
    return max(view.step_s - view.wait_s, 0.0)


def slowest_first(ranks: Iterable[RankView]) -> list[RankView]:
    """Ranks that are gone or unknown, those that are behind, then those that take longest."""
    views = tuple(ranks)
    together = _together_from(views)

    def slowness(view: RankView) -> tuple[bool, int, float, int]:
        step = -1 if view.step is None else min(view.step, together)
        return view.alive is True, step, -(own_s(view) or 0.0), view.rank

    return sorted(views, key=slowness)


def _together_from(views: Sequence[RankView]) -> int:
    """The first step that counts as the newest: nodes are not looked at in the same moment."""
    steps = [view.step for view in views if view.step is not None]
    times = [view.step_s for view in views if view.step_s and view.step_s >= SHORTEST_STEP_S]
    made_meanwhile = LOOKS_APART_S / median(times) if times else 0.0
    return max(steps, default=0) - 1 - floor(made_meanwhile)


def _worst_first(nodes: Iterable[TopNode]) -> list[TopNode]:
    return sorted(nodes, key=lambda n: (not n.silent, -n.numbers.get("temperature_c", 0.0), n.node))


def _node(
    report: NodeReport, age_s: float | None, counters: Mapping[str, CounterTotals] | None
) -> TopNode:
    numbers = {sample.metric: sample.value for sample in node_samples([report], counters)}
    missing = tuple(
        (result.check, "; ".join(result.notes[:2]) or result.status.value)
        for result in report.results
        if result.status is not ProbeStatus.MEASURED
    )
    return TopNode(report.node, numbers, age_s, missing=missing)
