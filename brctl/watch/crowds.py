"""Many nodes that show the same at once: one cause that they share, and one message about it."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from brctl.model.nodeset import fold
from brctl.model.watch.state import Suspicion
from brctl.watch.node_rules import too_many
from brctl.watch.rules import RULES, title_of

TOGETHER = timedelta(minutes=5)
"""Nodes that break one after another over hours are no crowd (own; as the short breaker)."""


def crowds(
    suspicions: Iterable[Suspicion], known: int, now: datetime, before: Mapping[str, object]
) -> dict[str, tuple[str, ...]]:
    """Nodes by the rule that suspects too many of them at once.

    Unconfirmed signs count: the first of thirty nodes must not be taken before the last has shown.
    A crowd stays one as long as so many are suspected, however old their signs become.
    """
    by_rule: dict[str, list[str]] = {}
    for held in suspicions:
        fresh = now - held.since < TOGETHER or held.rule in before
        if RULES[held.rule].accuses and fresh:
            by_rule.setdefault(held.rule, []).append(held.subject)
    return {
        rule: tuple(sorted(nodes)) for rule, nodes in by_rule.items() if too_many(len(nodes), known)
    }


def crowd_text(rule: str, nodes: tuple[str, ...], known: int) -> str:
    """One sentence about a crowd."""
    return (
        f"{len(nodes)} of {known} nodes at once: {title_of(rule)} ({fold(nodes)});"
        " look for what they share, no node is taken away for it"
    )
