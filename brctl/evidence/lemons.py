"""Nodes that fail again and again, by the seven signals of Meta's rule (arXiv 2410.21680, 4.1).

Each single repair of a lemon looks like success; only weeks together tell. Meta tuned limits by
hand and published none: those below are our own, and a count speaks against a node only where few
others reach it, so that a bad week of all names nobody.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class LemonSignal(StrEnum):
    """What is counted of a node, under Meta's names."""

    EXCLUDED_JOBS = "excl_jobid_count"
    XIDS = "xid_cnt"
    TICKETS = "tickets"
    OUTS = "out_count"
    MULTI_NODE_FAILS = "multi_node_node_fails"
    SINGLE_NODE_FAILS = "single_node_node_fails"
    SINGLE_NODE_RATE = "single_node_node_failure_rate"


@dataclass(frozen=True, slots=True)
class LemonRule:
    """One signal.

    Attributes:
        least: From here on it speaks against a node.
        family: Signals of one family are one reason: they count the same thing.
    """

    title: str
    least: float
    family: str


RULES: Mapping[LemonSignal, LemonRule] = {
    LemonSignal.EXCLUDED_JOBS: LemonRule("jobs that a run moved off it", 2, "out"),
    LemonSignal.XIDS: LemonRule("different Xids", 2, "xid"),
    LemonSignal.TICKETS: LemonRule("repair tickets", 1, "ticket"),
    LemonSignal.OUTS: LemonRule("times taken out of service", 2, "out"),
    LemonSignal.MULTI_NODE_FAILS: LemonRule("faults of jobs on many nodes", 2, "multi"),
    LemonSignal.SINGLE_NODE_FAILS: LemonRule("faults of jobs on it alone", 2, "single"),
    LemonSignal.SINGLE_NODE_RATE: LemonRule("the same a day", 0.1, "single"),
}

REASONS = 2
"""Reasons of different families that make a lemon; one is worth a look."""

OTHERS_SHARE = 0.05
"""At most this share of a fleet, or one node, reaches a count that speaks against a node."""


@dataclass(frozen=True, slots=True, order=True)
class LemonSign:
    """One thing that was counted: `what` is a job, an Xid, a run, a ticket or a verdict."""

    node: str
    signal: LemonSignal
    what: str


@dataclass(frozen=True, slots=True)
class NodePast:
    """A node's counts, and what each was counted from.

    Attributes:
        against: Signals that speak against it.
        is_lemon: They are of two families or more.
    """

    node: str
    counts: Mapping[LemonSignal, float]
    evidence: Mapping[LemonSignal, tuple[str, ...]]
    against: tuple[LemonSignal, ...]
    is_lemon: bool


def lemons(signs: Iterable[LemonSign], fleet: int, back: timedelta) -> tuple[NodePast, ...]:
    """Nodes that a signal speaks against, the worst first.

    Args:
        signs: Of all nodes; what is said twice counts once.
        fleet: How many nodes there are.
        back: The time the signs are of.
    """
    found: dict[str, dict[LemonSignal, list[str]]] = {}
    for sign in sorted(set(signs)):
        found.setdefault(sign.node, {}).setdefault(sign.signal, []).append(sign.what)
    counts = {node: _counts(signals, back) for node, signals in found.items()}
    few = max(1, int(OTHERS_SHARE * fleet))
    pasts = (_past(node, counts, found[node], few) for node in found)
    return tuple(
        sorted(
            (past for past in pasts if past.against),
            key=lambda past: (not past.is_lemon, -len(past.against), past.node),
        )
    )


def _counts(
    signals: Mapping[LemonSignal, Sequence[str]], back: timedelta
) -> Mapping[LemonSignal, float]:
    counts: dict[LemonSignal, float] = {s: len(signals.get(s, ())) for s in LemonSignal}
    days = back / timedelta(days=1)
    alone = counts[LemonSignal.SINGLE_NODE_FAILS]
    return counts | {LemonSignal.SINGLE_NODE_RATE: round(alone / days, 4)}


def _past(
    node: str,
    counts: Mapping[str, Mapping[LemonSignal, float]],
    evidence: Mapping[LemonSignal, Sequence[str]],
    few: int,
) -> NodePast:
    own = counts[node]
    against = tuple(
        signal
        for signal, rule in RULES.items()
        if own[signal] >= rule.least
        and sum(other[signal] >= own[signal] for other in counts.values()) <= few
    )
    families = {RULES[signal].family for signal in against}
    told = {signal: tuple(whats) for signal, whats in evidence.items()}
    return NodePast(node, own, told, against, len(families) >= REASONS)
