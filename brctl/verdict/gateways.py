"""Say of a verdict through whom its suspects were seen, where they did not prove who they are.

Where all nodes behind one gateway are accused together, it is the gateway that is named: it speaks
for each of them, and so many machines do not fail at once.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from brctl.model.evidence import Gap, Subject
from brctl.model.inventory import Inventory
from brctl.model.verdict import Verdict

GATEWAY = "gateway"
"""What a gap is about that names a gateway."""


LEAST_ACCUSED = 2
"""One node behind a gateway is a node; two that are all of them are the gateway (own)."""
_WAY_ROUND = "way round the gateway"
_DOUBTED = 0.5
"""Nobody knows how often a gateway is broken or owned (own)."""


def doubted(verdict: Verdict, asked: Collection[str], inventory: Inventory) -> Verdict:
    """The verdict without nodes that only their gateway accuses, all that were asked behind it."""
    behind: dict[str, set[str]] = {}
    for name in asked:
        if name in inventory.nodes and (via := inventory.nodes[name].via):
            behind.setdefault(via, set()).add(name)
    accused = set(verdict.nodes)
    whole = {
        via: nodes for via, nodes in behind.items()
        if len(nodes) >= LEAST_ACCUSED and nodes <= accused
    }  # fmt: skip
    return _without(verdict, whole) if whole else verdict


def _without(verdict: Verdict, whole: Mapping[str, Collection[str]]) -> Verdict:
    names = ", ".join(sorted(whole))
    cleared = {name for nodes in whole.values() for name in nodes}
    gaps = [
        Gap(Subject(name), _WAY_ROUND, f"gateway {via} says this of all its nodes, look at {via}")
        for via, nodes in sorted(whole.items())
        for name in sorted(nodes)
    ]
    return replace(
        verdict,
        title=f"{verdict.title}, says gateway {names} of all {len(cleared)} nodes behind it",
        suspects=tuple(s for s in verdict.suspects if s.node not in cleared),
        probability=min(verdict.probability, _DOUBTED),
        not_checked=(*verdict.not_checked, *gaps),
        settle=(*(f"brctl nodes show {via}" for via in sorted(whole)), *verdict.settle),
    )


def seen_through(verdict: Verdict, inventory: Inventory) -> Verdict:
    """The verdict, with a gap for each suspect whose answers a gateway could have made up.

    For fleets whose gateways ask the nodes behind them: whoever owns the gateway speaks for its
    nodes, so nobody should evict one without knowing it.
    """
    gaps = [
        Gap(Subject(name), GATEWAY, f"seen through gateway {via} only, which can make up answers")
        for name in verdict.nodes
        if (via := inventory.nodes[name].via if name in inventory.nodes else "")
    ]
    if not gaps:
        return verdict
    gateways = sorted({inventory.nodes[gap.subject.node].via for gap in gaps})
    say = f"{verdict.say}; seen through gateway {', '.join(gateways)} only"
    return replace(verdict, not_checked=(*verdict.not_checked, *gaps), say=say)


def said_through(verdict: Verdict) -> str:
    """The same in a few words, for whoever is about to act; "" when nobody stands between."""
    return "; ".join(
        f"{gap.subject.node} was {gap.why}" for gap in verdict.not_checked if gap.what == GATEWAY
    )
