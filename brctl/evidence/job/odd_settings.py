"""Why a late node is late: a setting of its GPUs, or of its processors, that no other node has.

A lower limit of power or a lower clock is often on purpose, and then it is everywhere. Where it is
one node's, and this node is the one all others wait for, it is the reason. Parts of the card's own
figures are compared, so that cards of two models are one fleet.
"""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from brctl.evidence.operators import is_number
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import NodeReport

CHECK, GOVERNOR = "gpu.clocks", "host.cpu.governor"

LESS_SHARE = 0.9
"""A tenth less than the usual card's part is no spread between cards (own)."""

LEAST_NODES = 3
"""Two cannot outvote each other."""

BUSY_PCT = 50.0
"""An idle card lowers its clock by itself."""


@dataclass(frozen=True, slots=True)
class _CardRule:
    """A figure of a card as a part of another of its own, of which less makes it slow."""

    name: str
    whole: str
    fault: FaultClass
    words: str
    when_busy: bool = False


_RULES = (
    _CardRule(
        "power_limit_w", "default_power_limit_w", FaultClass.THERMAL_POWER,
        "is limited to {share:.0%} of its usual power, the others to {usual:.0%}",
    ),
    _CardRule(
        "sm_mhz", "max_sm_mhz", FaultClass.GPU_SLOW,
        "runs at {share:.0%} of its highest clock, the others at {usual:.0%}", when_busy=True,
    ),
)  # fmt: skip

_Shares = Mapping[tuple[str, str], float]


def odd_settings(
    status: JobStatus, reports: Collection[NodeReport], late: Iterable[Evidence]
) -> Iterable[Evidence]:
    """What late nodes' GPUs have less of than the others', as sure as the lateness is.

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
    yield from _odd_governors(status, reports, weights)


def _names_a_late_node(item: Evidence) -> bool:
    named = bool(item.subject.node) and item.fault is FaultClass.STRAGGLER_SLOW
    return named and item.weight in (Weight.CONVICTS, Weight.HINTS)


def _shares(rule: _CardRule, status: JobStatus, reports: Iterable[NodeReport]) -> _Shares:
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


def _odd_governors(
    status: JobStatus, reports: Iterable[NodeReport], late: Container[str]
) -> Iterable[Evidence]:
    """Late nodes whose processors' clock is chosen otherwise than on most: a lead and no more."""
    told = {
        report.node: str(m.value)
        for report in reports
        for m in report.named(GOVERNOR)
        if report.node in status.job.nodes
    }
    usual, nodes = Counter(told.values()).most_common(1)[0] if told else ("", 0)
    for node, governor in sorted(told.items()):
        if node in late and governor != usual and nodes * 2 > len(told) >= LEAST_NODES:
            yield Evidence(
                kind=GOVERNOR,
                subject=Subject(node),
                weight=Weight.CONTEXT,
                fault=None,
                role=Role.CONTEXT,
                source="host.cpu",
                text=f"{node}, which all others wait for: the clock of its processors is chosen by"
                f" {governor!s:.40}, on {nodes} other nodes by {usual!s:.40}",
            )


def _odd(rule: _CardRule, subject: Subject, weight: Weight, share: float, usual: float) -> Evidence:
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
