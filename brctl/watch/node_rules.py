"""What the answers of a node, and its silence, make a watcher suspect."""

from collections.abc import Iterable, Mapping, Set
from datetime import datetime, timedelta
from math import floor

from brctl.model.evidence import Evidence, Role, Weight
from brctl.model.nodeset import fold
from brctl.model.watch.state import Sighting
from brctl.watch.rules import OF_CHECK, RULES

BEFORE_WE_CAME = timedelta(minutes=10)
"""A kernel line that was older when the watch began is history, and so is one seen before."""

MANY_NODES, MANY_SHARE = 2, 0.1
"""More nodes than this, and this share of all, do not break each for itself at once (own)."""

AGAINST = (Weight.HINTS, Weight.CONVICTS)
_SURE_ONLY = "kernel-fatal"


def node_sightings(
    node: str, evidence: Iterable[Evidence], looks: Mapping[str, int], since: datetime
) -> tuple[Sighting, ...]:
    """What a node's newest answers say against it, one sighting a rule.

    Args:
        node: Whose answers they are.
        evidence: All that its answers say.
        looks: How often each check was asked and has answered by now.
        since: Kernel lines from before are old news.
    """
    against: dict[str, list[Evidence]] = {}
    for item in evidence:
        rule = OF_CHECK.get(item.source)
        if rule is not None and item.subject.node == node and _counts(rule, item, since):
            against.setdefault(rule, []).append(item)
    return tuple(
        Sighting(
            rule,
            node,
            max(looks.get(item.source, 0) for item in found),
            found[0].text,
            tuple(dict.fromkeys(item.source for item in found)),
        )
        for rule, found in against.items()
    )


def _counts(rule: str, item: Evidence, since: datetime) -> bool:
    if item.role is not Role.ROOT or item.weight not in AGAINST:
        return False
    if rule != _SURE_ONLY:
        return True
    return item.weight is Weight.CONVICTS and (item.at is None or item.at >= since)


def too_many(nodes: int, known: int) -> bool:
    """Whether so many that show the same share a cause: silence is then the network's.

    Examples:
        >>> [too_many(n, 128) for n in (3, 12, 13, 30)]
        [False, False, True, True]
    """
    return nodes > max(MANY_NODES, MANY_SHARE * known)


def silence_sightings(
    silent_s: Mapping[str, float], known: Set[str], waiting: Set[str] = frozenset()
) -> tuple[Sighting, ...]:
    """Nodes that say nothing, each for so many seconds; none while too many may be silent.

    Nothing is known of those that are `waiting` for their turn to log in.
    """
    if too_many(len(silent_s.keys() | waiting), len(known)):
        return ()
    every_s = RULES["node-silent"].every_s
    return tuple(
        Sighting(
            "node-silent", node, 1 + floor(seconds / every_s), f"no answer for {seconds:.0f} s"
        )
        for node, seconds in sorted(silent_s.items())
    )


def network_trouble(silent: Iterable[str], known: int) -> str:
    """One sentence where silence is the network's; "" where it is not."""
    names = sorted(silent)
    if not too_many(len(names), known):
        return ""
    return (
        f"{len(names)} of {known} nodes are silent at once ({fold(names)}): look at the way there"
    )
