"""Why a late node is late: a setting of its GPUs that the same GPUs of the other nodes have not.

A lower limit of power or a lower clock is often on purpose, and then it is everywhere. Where it is
one node's, and this node is the one all others wait for, it is the reason. Parts of the card's own
figures are compared, so that cards of two models are one fleet.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from brctl.evidence.operators import is_number
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import NodeReport

CHECK = "gpu.clocks"

LESS_SHARE = 0.9
"""A tenth less than the usual card's part is no spread between cards (own)."""

LEAST_NODES = 3
"""Two cannot outvote each other."""

BUSY_PCT = 50.0
"""An idle card lowers its clock by itself."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A figure of a card as a part of another of its own, of which less makes it slow."""

    name: str
    whole: str
    fault: FaultClass
    words: str
    when_busy: bool = False


_RULES = (
    _Rule(
        "power_limit_w", "default_power_limit_w", FaultClass.THERMAL_POWER,
        "is limited to {share:.0%} of its usual power, the others to {usual:.0%}",
    ),
    _Rule(
        "sm_mhz", "max_sm_mhz", FaultClass.GPU_SLOW,
        "runs at {share:.0%} of its highest clock, the others at {usual:.0%}", when_busy=True,
    ),
)  # fmt: skip

_Shares = Mapping[tuple[str, str], float]


def odd_settings(
    status: JobStatus, reports: Collection[NodeReport], late: Iterable[Evidence]
) -> Iterable[Evidence]:
    """What the GPUs of late nodes have less of than those of the others, as sure as the lateness.

    Args:
        status: The job.
        reports: What its nodes answered.
        late: Evidence of the ranks the others wait for.
    """
    weights = {item.subject.node: item.weight for item in late if _names_a_late_node(item)}
    if not weights:
        return
    for rule in _RULES:
        shares = _shares(rule, status, reports)
        others = [share for (node, _), share in shares.items() if node not in weights]
        if len({node for node, _ in shares}) < LEAST_NODES or not others:
            continue
        usual = median(others)
        for (node, gpu), share in sorted(shares.items()):
            if node in weights and share < LESS_SHARE * usual:
                yield _odd(rule, Subject(node, gpu), weights[node], share, usual)


def _names_a_late_node(item: Evidence) -> bool:
    named = bool(item.subject.node) and item.fault is FaultClass.STRAGGLER_SLOW
    return named and item.weight in (Weight.CONVICTS, Weight.HINTS)


def _shares(rule: _Rule, status: JobStatus, reports: Iterable[NodeReport]) -> _Shares:
    """The part by node and GPU, of cards that tell both figures and, where it matters, work."""
    shares: dict[tuple[str, str], float] = {}
    for report in reports:
        if report.node not in status.job.nodes:
            continue
        read = {(m.name, m.subject): m.value for m in report.measured_by(CHECK)}
        for (name, gpu), value in read.items():
            whole = read.get((f"{CHECK}.{rule.whole}", gpu))
            busy = read.get((f"{CHECK}.busy_pct", gpu))
            works = not rule.when_busy or (is_number(busy) and busy >= BUSY_PCT)
            if name == f"{CHECK}.{rule.name}" and works and is_number(value) and is_number(whole):
                shares |= {(report.node, gpu): value / whole} if whole > 0 else {}
    return shares


def _odd(rule: _Rule, subject: Subject, weight: Weight, share: float, usual: float) -> Evidence:
    words = rule.words.format(share=share, usual=usual)
    return Evidence(
        kind=f"job.gpu.{rule.name}",
        subject=subject,
        weight=weight,
        fault=rule.fault,
        role=Role.ROOT,
        source=CHECK,
        text=f"{subject.node}, which all others wait for: {subject.device} {words}",
        raw=f"{rule.name}={share:.3f} of {rule.whole} usual={usual:.3f}",
    )
