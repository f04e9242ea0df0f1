"""What one round of a burn-in says: who is out, and how fast each device was beside its peers."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from brctl.evidence.assess import Assessment
from brctl.evidence.operators import is_number
from brctl.evidence.peers import EQUAL, QUORUM
from brctl.model.evidence import Evidence, Weight
from brctl.model.fault import FaultClass
from brctl.model.sweeps.burnin import Rating
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.report import NodeReport

ALWAYS_OUT = frozenset({FaultClass.SILENT_CORRUPTION, FaultClass.NODE_FAILURE})
"""Wrong results and a node that no longer answers end a node's burn-in whatever was asked."""

STOP_ON: Mapping[str, frozenset[FaultClass]] = {
    "xid": frozenset(
        {FaultClass.GPU_LOST, FaultClass.DRIVER_FIRMWARE, FaultClass.NVLINK, FaultClass.PCIE}
    ),
    "ecc": frozenset({FaultClass.GPU_MEMORY_ECC}),
    "thermal": frozenset({FaultClass.THERMAL_POWER}),
}
"""Words of --stop-on, and the classes they mean."""

COUNTS: Mapping[str, str] = {
    "gpu.gemm": "gpu.gemm.compared_results",
    "numerics.minigpt": "numerics.minigpt.dense_steps",
}
"""Checks that repeat a computation whose result is known, and what says how often they did."""

_WRONG_BITS = (FaultClass.SILENT_CORRUPTION, Weight.CONVICTS)

RATE_UNITS = ("TFLOP/s", "GB/s")


def stopping(
    found: Assessment, conditions: Iterable[str], known: Iterable[Evidence]
) -> tuple[Evidence, ...]:
    """The evidence that takes a node out: convicting, of a class asked for, and new.

    Args:
        found: The judged round.
        conditions: Keys of STOP_ON.
        known: What convicted the node before the burn-in began; history is no result of it.
    """
    classes = ALWAYS_OUT.union(*(STOP_ON[condition] for condition in conditions))
    old = {(e.kind, e.subject, e.raw) for e in known}
    return tuple(
        e
        for e in found.evidence
        if e.weight is Weight.CONVICTS
        and e.fault in classes
        and (e.kind, e.subject, e.raw) not in old
    )


def repetitions_in(report: NodeReport, check: str) -> int:
    """How often the device of a node that did it least often repeated its known computation."""
    name = COUNTS.get(check)
    counts = [
        int(m.value) for m in report.measurements if m.name == name and is_number(m.value)
    ]  # fmt: skip
    return max(0, min(counts, default=0))


def not_compared(reports: Sequence[NodeReport], peers: Assessment) -> Mapping[str, str]:
    """Nodes whose bits neither agree with a majority nor differ from one, and why."""
    why = {(g.what, g.subject.node): g.why for g in peers.gaps if EQUAL.get(g.what) == _WRONG_BITS}
    judged = {(e.kind, e.subject.node) for e in peers.evidence}
    return {
        report.node: reason
        for report in reports
        for m in report.measurements
        if (reason := why.get((m.name, report.node)) or why.get((m.name, "")))
        and (m.name, report.node) not in judged
    }


def rate(
    reports: Sequence[NodeReport],
    checks: Mapping[str, Check],
    group_of: Callable[[str], str] = lambda node: "",
) -> Mapping[str, tuple[Rating, ...]]:
    """Rates by node, each with its percentile among the same reading of equal hardware."""
    units = {
        name: spec.unit
        for check in checks.values()
        for name, spec in check.measurements.items()
        if spec.unit in RATE_UNITS
    }
    rows: dict[str, list[Rating]] = {report.node: [] for report in reports}
    pools: dict[tuple[str, str], list[float]] = {}
    for report in reports:
        for m in report.measurements:
            if m.name in units and is_number(m.value):
                value = float(m.value)
                rows[report.node].append(Rating(m.name, m.subject, value, units[m.name]))
                pools.setdefault((group_of(report.node), m.name), []).append(value)
    for pool in pools.values():
        pool.sort()
    return {
        node: tuple(_placed(rating, pools[group_of(node), rating.name]) for rating in ratings)
        for node, ratings in rows.items()
    }


def _placed(rating: Rating, pool: Sequence[float]) -> Rating:
    if len(pool) < QUORUM:
        return rating
    return replace(rating, percentile=100.0 * bisect_right(pool, rating.value) / len(pool))
