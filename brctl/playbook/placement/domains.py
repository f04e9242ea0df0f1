"""Which part of the network each node stands in, from the labels of any inventory source.

A node whose label is missing or says nothing is a domain of its own: unknown is never "the same".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LEVELS = ("minipod", "spine", "pod", "leaf", "rack")
"""Labels that name a domain, the widest network first: Arnold's minipod is what one spine joins."""

_LONGEST = 63
_SAYS_NOTHING = frozenset({"-", "n/a", "na", "nil", "none", "null", "tbd", "todo", "unknown", "?"})
_ALONE = "?"


@dataclass(frozen=True, slots=True)
class Domains:
    """Where nodes stand, at one level.

    Attributes:
        level: The label that was read; "" where no node has one.
        by_node: The domain of each node that was asked about.
        unlabelled: Nodes whose domain nobody knows.
    """

    level: str
    by_node: Mapping[str, str]
    unlabelled: tuple[str, ...]

    def of(self, node: str) -> str:
        """The domain of a node; one that the inventory no longer lists stands alone."""
        return self.by_node.get(node, _ALONE + node)

    def known(self, node: str) -> bool:
        """Whether a label says where a node stands."""
        return not self.of(node).startswith(_ALONE)

    def named(self, nodes: Sequence[str]) -> tuple[str, ...]:
        """The domains these nodes are known to stand in, each once."""
        return tuple(dict.fromkeys(self.of(n) for n in nodes if self.known(n)))


def domains_of(
    labels: Mapping[str, Mapping[str, str]], nodes: Sequence[str], level: str = ""
) -> Domains:
    """The domains of nodes; a node that `labels` does not know has none.

    Args:
        labels: Of each node of the inventory.
        nodes: Those asked about, in any order.
        level: The label to read; "" for the widest that most of the nodes have.
    """
    found = {node: labels.get(node, {}) for node in nodes}
    chosen = level or _best_level(found)
    of = {node: _domain(own, chosen) or _ALONE + node for node, own in found.items()}
    return Domains(chosen, of, tuple(n for n in of if of[n].startswith(_ALONE)))


def domains_for(
    labels: Mapping[str, Mapping[str, str]], nodes: Sequence[str], level: str = ""
) -> Domains:
    """The domains of these nodes and of all others, at the level that suits these."""
    chosen = level or domains_of(labels, nodes).level
    return domains_of(labels, [*nodes, *(name for name in labels if name not in nodes)], chosen)


def _best_level(labels: Mapping[str, Mapping[str, str]]) -> str:
    counts = {key: sum(bool(_domain(own, key)) for own in labels.values()) for key in LEVELS}
    best = max(LEVELS, key=lambda key: counts[key])
    return best if counts[best] else ""


def _domain(labels: Mapping[str, str], level: str) -> str:
    """The value of a label; "" for one that names nothing."""
    value = labels.get(level, "").strip()
    odd = len(value) > _LONGEST or not value.isprintable() or value.startswith(_ALONE)
    return "" if odd or value.lower() in _SAYS_NOTHING else value
