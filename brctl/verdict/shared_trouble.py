"""What every node has alike is no one node's: nobody is named, for nobody stands out.

Ports that all wait for their subnet manager, a driver that differs everywhere since an upgrade:
to evict one of the nodes mends nothing, and all of them cannot be.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import DISKS_CHECK, SSH
from brctl.model.fault import FaultClass
from brctl.verdict.belief import BEHAVIOUR

LEAST_NODES = 3
"""Of fewer nodes all may be broken alike (own)."""

_OF_PORTS = frozenset({FaultClass.NETWORK_IB, FaultClass.NETWORK_ETH, FaultClass.NETWORK_LINK})
"""Of the network all nodes share what is behind their ports."""


def without_shared_trouble(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The evidence, where what a check finds at every node that it asked names none of them."""
    asked: dict[str, set[str]] = defaultdict(set)
    found: dict[tuple[str, FaultClass | None], set[str]] = defaultdict(set)
    for item in filter(_is_of_a_node, evidence):
        asked[item.source].add(item.subject.node)
        if _is_against(item):
            found[item.kind, item.fault].add(item.subject.node)
    apart: list[Evidence] = []
    shared: dict[tuple[str, str], Evidence] = {}
    for item in sorted(evidence, key=lambda item: item.subject):
        nodes = asked[item.source]
        everywhere = len(nodes) >= LEAST_NODES and found[item.kind, item.fault] == nodes
        if everywhere and _is_of_a_node(item) and _is_against(item):
            shared.setdefault((item.kind, item.subject.device), _of_nobody(item, len(nodes)))
        else:
            apart.append(item)
    return (*apart, *shared.values())


def _is_of_a_node(item: Evidence) -> bool:
    """What a check measured there: not what ranks did or said, nor how the node was reached."""
    elsewhere = item.source in BEHAVIOUR or item.source in (SSH, DISKS_CHECK)
    return bool(item.subject.node) and item.strength is None and not elsewhere


def _is_against(item: Evidence) -> bool:
    """Equal hints name nobody anyway."""
    return item.role is Role.ROOT and item.weight is Weight.CONVICTS


def _of_nobody(item: Evidence, nodes: int) -> Evidence:
    """One for all of them."""
    text = f"{item.text}, and so it is at all {nodes} nodes"
    fault = FaultClass.NETWORK_SWITCH if item.fault in _OF_PORTS else item.fault
    return replace(item, subject=Subject("", item.subject.device), fault=fault, text=text)
