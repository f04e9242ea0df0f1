"""Why a late node is late: a setting of its GPUs, or of its processors, that no other node has.

A lower limit of power or a lower clock is often on purpose, and then it is everywhere. Where it is
one node's, and this node is the one all others wait for, it is the reason. Parts of the card's own
figures are compared, so that cards of two models are one fleet. Which card a rank uses is not read:
one that does nothing is not the late rank's, and where more work than the node has ranks, some are
another job's.
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

POWER_CAP = 0x4
"""Of the reasons for a clock: the power limit (nvmlClocksEventReasonSwPowerCap, NVML reference)."""

AT_LIMIT_SHARE = 0.95
"""A card that draws so much of its limit is held there, told or not (own)."""


@dataclass(frozen=True, slots=True)
class _CardRule:
    """A figure of a card as a part of another of its own, of which less makes it slow."""

    name: str
    whole: str
    fault: FaultClass
    words: str
    is_clock: bool = False


@dataclass(frozen=True, slots=True)
class _Card:
    """What a card that works tells of itself, or None.

    Attributes:
        works: False where nobody measured whether it does.
        drawn: What it draws, as a part of its own power limit.
        capped: Its power limit holds its clock.
    """

    parts: Mapping[str, float]
    works: bool
    drawn: float | None
    capped: bool


_RULES = (
    _CardRule(
        "power_limit_w", "default_power_limit_w", FaultClass.THERMAL_POWER,
        "is limited to {share:.0%} of its usual power, the others to {usual:.0%}",
    ),
    _CardRule(
        "sm_mhz", "max_sm_mhz", FaultClass.GPU_SLOW,
        "runs at {share:.0%} of its highest clock, the others at {usual:.0%}", is_clock=True,
    ),
)  # fmt: skip

_Cards = Mapping[tuple[str, str], _Card]


def odd_settings(
    status: JobStatus, reports: Collection[NodeReport], late: Iterable[Evidence]
) -> Iterable[Evidence]:
    """What late nodes' GPUs have less of than the others', as sure as the lateness is at most.

    Args:
        status: The job.
        reports: What its nodes answered.
        late: Evidence of the ranks the others wait for.
    """
    weights: dict[str, Weight] = {}
    for item in late:
        if _names_a_late_node(item) and weights.get(item.subject.node) is not Weight.CONVICTS:
            weights[item.subject.node] = item.weight
    if not weights:
        return
    cards = {
        (report.node, gpu): card
        for report in reports
        if report.node in status.job.nodes
        for gpu, card in _cards(report)
    }
    for rule in _RULES:
        yield from _odd_cards(rule, status, cards, weights)
    yield from _odd_governors(status, reports, weights)


def _names_a_late_node(item: Evidence) -> bool:
    named = bool(item.subject.node) and item.fault is FaultClass.STRAGGLER_SLOW
    return named and item.weight in (Weight.CONVICTS, Weight.HINTS)


def _cards(report: NodeReport) -> Iterable[tuple[str, _Card]]:
    """The cards of a node, without those that are known to do nothing."""
    read: dict[str, dict[str, float]] = {}
    for m in report.measured_by(CHECK):
        if is_number(m.value):
            read.setdefault(m.subject, {})[m.name.removeprefix(f"{CHECK}.")] = m.value
    for gpu, told in read.items():
        busy, reasons = told.get("busy_pct"), told.get("event_reasons", 0)
        if busy is None or busy >= BUSY_PCT:
            shares = {rule.name: _share(told, rule.name, rule.whole) for rule in _RULES}
            parts = {name: share for name, share in shares.items() if share is not None}
            drawn = _share(told, "power_w", "power_limit_w")
            capped = bool(int(reasons) & POWER_CAP) or (drawn or 0.0) >= AT_LIMIT_SHARE
            yield gpu, _Card(parts, busy is not None, drawn, capped)


def _share(told: Mapping[str, float], name: str, whole: str) -> float | None:
    if name not in told or told.get(whole, 0.0) <= 0:
        return None
    return told[name] / told[whole]


def _odd_cards(
    rule: _CardRule, status: JobStatus, cards: _Cards, weights: Mapping[str, Weight]
) -> Iterable[Evidence]:
    """Cards of late nodes that have less of one figure than the usual card of the others."""
    able = {
        where: card
        for where, card in cards.items()
        if rule.name in card.parts and (card.works or not rule.is_clock)
    }
    others = [card for (node, _), card in able.items() if node not in weights]
    if len({node for node, _ in able}) < LEAST_NODES or not others:
        return
    usual = median(card.parts[rule.name] for card in others)
    odd = {
        where: card
        for where, card in sorted(able.items())
        if where[0] in weights and card.parts[rule.name] < LESS_SHARE * usual
    }
    for (node, gpu), card in odd.items():
        sure = not _may_be_anothers(node, status, able, odd) and card.works
        if rule.is_clock:
            sure = sure and _draws_no_more(card, others)
            if card.capped:
                continue  # it computes while the others, which wait for it, draw little
        weight = weights[node] if sure else Weight.HINTS
        yield _odd(rule, Subject(node, gpu), weight, card.parts[rule.name], usual)


def _may_be_anothers(node: str, status: JobStatus, able: _Cards, odd: _Cards) -> bool:
    """More cards work than the node has ranks of the job, and not all of them are odd."""
    mine = [where for where in able if where[0] == node]
    return len(mine) > len(status.job.ranks_on(node)) and not odd.keys() >= set(mine)


def _draws_no_more(card: _Card, others: Iterable[_Card]) -> bool:
    """A card that computes while the others wait for it draws more than they: less clock, too."""
    drawn = [other.drawn for other in others if other.drawn is not None]
    return card.drawn is not None and bool(drawn) and card.drawn <= median(drawn)


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
