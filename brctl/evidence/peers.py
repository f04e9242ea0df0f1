"""Who differs from the fleet: readings of equal hardware compared with each other.

Rule 1: only equal things are compared; the caller's group key says what is equal, and for bits
that differ between libraries or processors (`KINDS`) what the node itself measured.
Rule 2: median and median absolute deviation, so that the odd one cannot move its own yardstick.
Rule 3: two cannot outvote each other. Where they differ, a gap says so and nobody is blamed.
"""
# ruff: noqa: E501  (a table is read by its columns)

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from brctl.evidence.assess import Assessment
from brctl.evidence.operators import is_number
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.evidence_kinds import FLEET
from brctl.model.fault import FaultClass
from brctl.model.sweeps.report import NodeReport, Value

QUORUM = 3
"""With fewer readings there is no majority."""

_MAD_TO_SIGMA = 1.4826
"""Makes the median absolute deviation of a normal distribution its standard deviation."""


class Side(StrEnum):
    """Which side of the median is bad."""

    LOW = "low"
    HIGH = "high"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class PeerRule:
    """One comparison over the fleet.

    Attributes:
        sigmas: Robust standard deviations from the median that make an outlier.
        least_pct: And at least this far from the median, in percent of it; where all agree almost
            exactly the deviation is so small that noise would be an outlier.
    """

    kind: str
    side: Side
    fault: FaultClass
    say: str
    sigmas: float = 5.0
    least_pct: float = 5.0


@dataclass(frozen=True, slots=True)
class _Sample:
    subject: Subject
    value: Value


_F = FaultClass
GEMM_TYPES = ("bf16", "fp16", "fp32", "tf32", "fp64", "int8", "fp8")
# fmt: off
NUMERIC: tuple[PeerRule, ...] = (
    *(PeerRule(f"gpu.gemm.{d}_tflop_per_s", Side.LOW, _F.GPU_SLOW, "multiplies slower than its peers") for d in GEMM_TYPES),
    PeerRule("gpu.load.last_tflop_per_s", Side.LOW, _F.GPU_SLOW, "is slower than its peers when all are loaded"),
    PeerRule("gpu.hbm.gb_per_s", Side.LOW, _F.GPU_SLOW, "moves memory slower than its peers"),
    PeerRule("gpu.copy.h2d_gb_per_s", Side.LOW, _F.PCIE, "copies slower than its peers", least_pct=10.0),
    PeerRule("gpu.copy.d2h_gb_per_s", Side.LOW, _F.PCIE, "copies slower than its peers", least_pct=10.0),
    PeerRule("fabric.allreduce.bus_gb_per_s", Side.LOW, _F.NVLINK, "reduces slower inside the node"),
    PeerRule("fabric.alltoall.bus_gb_per_s", Side.LOW, _F.NVLINK, "exchanges slower inside the node"),
    PeerRule("gpu.clocks.temperature_c", Side.HIGH, _F.THERMAL_POWER, "is hotter than its peers", least_pct=25.0),
    PeerRule("host.memory.total_bytes", Side.LOW, _F.NODE_FAILURE, "has less memory than its peers", least_pct=2.0),
)
# fmt: on
"""Thresholds no document gives; the fleet decides (own)."""

_DRIFT = (_F.ENVIRONMENT_MISMATCH, Weight.HINTS)
EQUAL: Mapping[str, tuple[FaultClass, Weight]] = {
    **{f"gpu.gemm.{d}_digest": (_F.SILENT_CORRUPTION, Weight.CONVICTS) for d in GEMM_TYPES},
    "numerics.minigpt.dense_digest": (_F.SILENT_CORRUPTION, Weight.CONVICTS),
    "numerics.minigpt.moe_digest": (_F.SILENT_CORRUPTION, Weight.CONVICTS),
    "gpu.devices.driver_version": _DRIFT,
    "host.versions.kernel": _DRIFT,
    "host.versions.system": _DRIFT,
    "host.versions.driver": _DRIFT,
    "host.versions.nic_firmware": _DRIFT,
    "host.versions.torch": _DRIFT,
    "host.versions.nccl": _DRIFT,
    "host.limits.locked_bytes": _DRIFT,
}
"""Readings that must be the same everywhere; the minority is the odd one."""

KINDS: Mapping[str, str] = {
    "numerics.minigpt.dense_digest": "numerics.minigpt.kind",
    "numerics.minigpt.moe_digest": "numerics.minigpt.kind",
}
"""Sums in another order round otherwise: what else a node must have measured the same of the same
subject before its reading is compared."""


def assess_peers(
    reports: Sequence[NodeReport],
    group_of: Callable[[str], str] = lambda node: "",
    numeric: Iterable[PeerRule] = NUMERIC,
    equal: Mapping[str, tuple[FaultClass, Weight]] = EQUAL,
) -> Assessment:
    """Evidence from comparing nodes with each other.

    Args:
        reports: All reports of one sweep; order does not matter.
        group_of: Node name -> what hardware it is; only equal groups are compared.
        numeric: Readings compared by their distance from the median.
        equal: Readings that must be the same everywhere.
    """
    evidence: list[Evidence] = []
    gaps: list[Gap] = []
    rules = list(numeric)
    groups = _groups(reports, {*equal, *(rule.kind for rule in rules)}, group_of)
    for rule in rules:
        for samples in groups[rule.kind]:
            evidence.extend(_outliers(rule, samples))
            gaps.extend(_too_few(rule.kind, samples, differ=_far_apart(rule, samples)))
    for kind, (fault, weight) in equal.items():
        for samples in groups[kind]:
            evidence.extend(_minority(kind, fault, weight, samples))
            gaps.extend(_undecided(kind, samples))
        gaps.extend(_alone(kind, groups[kind]))
    return Assessment(tuple(evidence), tuple(gaps))


def _groups(
    reports: Sequence[NodeReport], kinds: Iterable[str], group_of: Callable[[str], str]
) -> Mapping[str, Iterable[list[_Sample]]]:
    """The samples of each kind, one list for each group of equal hardware."""
    groups: dict[str, dict[tuple[str, Value], list[_Sample]]] = {kind: {} for kind in kinds}
    for report in sorted(reports, key=lambda r: r.node):
        group = group_of(report.node)
        own = {(m.name, m.subject): m.value for m in report.measurements}
        for m in report.measurements:
            if m.name in groups:
                sample = _Sample(Subject(report.node, m.subject), m.value)
                key = (group, own.get((KINDS.get(m.name, ""), m.subject), ""))
                groups[m.name].setdefault(key, []).append(sample)
    return {kind: found.values() for kind, found in groups.items()}


def _numbers(samples: Sequence[_Sample]) -> list[float]:
    return [float(s.value) for s in samples if is_number(s.value)]


def _threshold(rule: PeerRule, values: Sequence[float]) -> tuple[float, float]:
    """Median, and the distance from it beyond which a value is an outlier."""
    middle = median(values)
    deviation = median(abs(value - middle) for value in values) * _MAD_TO_SIGMA
    return middle, max(rule.sigmas * deviation, abs(middle) * rule.least_pct / 100)


def _outliers(rule: PeerRule, samples: Sequence[_Sample]) -> Iterable[Evidence]:
    values = _numbers(samples)
    if len(values) < QUORUM:
        return
    middle, limit = _threshold(rule, values)
    for sample in samples:
        if not is_number(sample.value):
            continue
        below = middle - sample.value
        distance = {Side.LOW: below, Side.HIGH: -below, Side.BOTH: abs(below)}[rule.side]
        text = f"{rule.kind} is {sample.value:.6g}, the median of {len(values)} is {middle:.6g}"
        if distance > limit:
            text = f"{sample.subject} {rule.say}: {text}"
        yield _evidence(
            rule.kind, sample, rule.fault, Weight.HINTS if distance > limit else Weight.CLEARS, text
        )


def _far_apart(rule: PeerRule, samples: Sequence[_Sample]) -> bool:
    values = _numbers(samples)
    return len(values) > 1 and max(values) - min(values) > abs(max(values)) * rule.least_pct / 100


def _too_few(kind: str, samples: Sequence[_Sample], *, differ: bool) -> Iterable[Gap]:
    count = len(_numbers(samples))
    if 0 < count < QUORUM and differ:
        why = f"{count} readings differ; with fewer than {QUORUM} nobody can be outvoted"
        yield Gap(Subject(""), kind, why)


def _minority(
    kind: str, fault: FaultClass, weight: Weight, samples: Sequence[_Sample]
) -> Iterable[Evidence]:
    counts = Counter(sample.value for sample in samples)
    if len(samples) < QUORUM or not counts:
        return
    usual, votes = counts.most_common(1)[0]
    if votes * 2 <= len(samples):
        return
    for sample in samples:
        same = sample.value == usual
        text = f"{kind} is {sample.value!s:.80}, {votes} of {len(samples)} have {usual!s:.80}"
        yield _evidence(kind, sample, fault, Weight.CLEARS if same else weight, text)


def _undecided(kind: str, samples: Sequence[_Sample]) -> Iterable[Gap]:
    counts = Counter(sample.value for sample in samples)
    if len(counts) < 2:
        return
    votes = counts.most_common(1)[0][1]
    if len(samples) < QUORUM or votes * 2 <= len(samples):
        nodes = ", ".join(sorted({s.subject.node for s in samples})[:8])
        why = f"{len(counts)} different values on {nodes} and no majority; one of them is wrong"
        # Where each kind of part is compared by itself, others of the fleet may well be decided.
        for subject in sorted({s.subject for s in samples}) if kind in KINDS else [Subject("")]:
            yield Gap(subject, kind, why)


def _alone(kind: str, groups: Iterable[list[_Sample]]) -> Iterable[Gap]:
    """What is compared within its own kind only, and is the only one of it."""
    groups = list(groups)
    for samples in groups if kind in KINDS and len(groups) > 1 else ():
        if len({sample.subject.node for sample in samples}) == 1:
            why = (
                "compared with no other node: bits are asked to be equal only within one kind of"
                f" part and library, and of {len(groups)} kinds this node is the only one of its"
            )
            yield Gap(samples[0].subject, kind, why)


def _evidence(kind: str, sample: _Sample, fault: FaultClass, weight: Weight, text: str) -> Evidence:
    return Evidence(
        kind=kind,
        subject=sample.subject,
        weight=weight,
        fault=fault,
        role=Role.CONTEXT if weight is Weight.CLEARS else Role.ROOT,
        source=FLEET,
        text=text,
        raw=f"{kind} {sample.value!s:.200}",
    )
