"""What one round of a burn-in says: who is out, and how fast each device was beside its peers."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from brctl.evidence.assess import Assessment
from brctl.evidence.operators import is_number
from brctl.evidence.peers import QUORUM
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
