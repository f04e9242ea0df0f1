"""Say of a verdict through whom its suspects were seen, where they did not prove who they are."""

from dataclasses import replace

from brctl.model.evidence import Gap, Subject
from brctl.model.inventory import Inventory
from brctl.model.verdict import Verdict

GATEWAY = "gateway"
"""What a gap is about that names a gateway."""


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
