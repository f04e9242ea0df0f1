"""What was normal for a kind of hardware when it was well, and who differs from it now."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from brctl.evidence.operators import is_number
from brctl.evidence.peers import NUMERIC, QUORUM, PeerRule, Side
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.sweeps.report import NodeReport

DRIVER = "gpu.devices.driver_version"


@dataclass(frozen=True, slots=True, order=True)
class Normal:
    """One reading of one kind of hardware.

    Attributes:
        group: The kind of hardware, "" when the inventory does not say.
        deviation: Median absolute deviation.
        count: Readings it was learnt from.
    """

    kind: str
    group: str
    middle: float
    deviation: float
    count: int


@dataclass(frozen=True, slots=True)
class Baseline:
    """Everything learnt in one sweep; stale when the driver has changed since."""

    learned_at: datetime
    drivers: tuple[str, ...]
    entries: tuple[Normal, ...]


def learn_baseline(
    reports: Sequence[NodeReport],
    learned_at: datetime,
    group_of: Callable[[str], str] = lambda node: "",
    rules: Iterable[PeerRule] = NUMERIC,
) -> Baseline:
    """Median and deviation of every reading that is compared over the fleet.

    Fewer than three readings of a kind are not learnt: one of two may be the sick one.
    """
    kinds = {rule.kind for rule in rules}
    pools: dict[tuple[str, str], list[float]] = {}
    drivers: set[str] = set()
    for report in reports:
        for m in report.measurements:
            if m.name in kinds and is_number(m.value):
                pools.setdefault((m.name, group_of(report.node)), []).append(float(m.value))
            elif m.name == DRIVER and isinstance(m.value, str):
                drivers.add(m.value[:40])
    entries = (
        Normal(kind, group, median(pool), _deviation(pool), len(pool))
        for (kind, group), pool in pools.items()
        if len(pool) >= QUORUM
    )
    return Baseline(learned_at, tuple(sorted(drivers)), tuple(sorted(entries)))


def _deviation(pool: Sequence[float]) -> float:
    middle = median(pool)
    return median(abs(value - middle) for value in pool)


def assess_baseline(
    report: NodeReport,
    baseline: Baseline,
    group: str = "",
    rules: Iterable[PeerRule] = NUMERIC,
) -> Iterator[Evidence]:
    """Who is far from what was normal; where even two nodes differ, the past is the third voice."""
    by_kind = {rule.kind: rule for rule in rules}
    normals = {entry.kind: entry for entry in baseline.entries if entry.group == group}
    for m in report.measurements:
        rule, normal = by_kind.get(m.name), normals.get(m.name)
        if rule is None or normal is None or not is_number(m.value):
            continue
        subject = Subject(report.node, m.subject)
        yield _judged(rule, normal, subject, float(m.value), baseline, report.received_at)


def _judged(
    rule: PeerRule,
    normal: Normal,
    subject: Subject,
    value: float,
    baseline: Baseline,
    at: datetime | None,
) -> Evidence:
    below = normal.middle - value
    distance = {Side.LOW: below, Side.HIGH: -below, Side.BOTH: abs(below)}[rule.side]
    limit = max(rule.sigmas * 1.4826 * normal.deviation, abs(normal.middle) * rule.least_pct / 100)
    odd = distance > limit
    when = f"{baseline.learned_at:%Y-%m-%d}, driver {', '.join(baseline.drivers) or 'not known'}"
    text = f"{rule.kind} is {value:.6g}; {normal.middle:.6g} was normal ({when})"
    return Evidence(
        kind=rule.kind,
        subject=subject,
        weight=Weight.HINTS if odd else Weight.CLEARS,
        fault=rule.fault,
        role=Role.ROOT if odd else Role.CONTEXT,
        source="baseline",
        text=f"{subject} {rule.say}: {text}" if odd else text,
        raw=f"{rule.kind} {value:.6g}",
        at=at,
    )
