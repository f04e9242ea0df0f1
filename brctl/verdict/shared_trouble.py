"""What every node has alike is no one node's: nobody is named, for nobody stands out.

Ports that all wait for their subnet manager, a driver that differs everywhere since an upgrade:
to evict one of the nodes mends nothing, and all of them cannot be.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import DISKS_CHECK, SSH
from brctl.model.fault import FaultClass
from brctl.verdict.belief import BEHAVIOUR

LEAST_NODES, MOST_SHARE = 3, 0.8
"""Fewer nodes may all be broken alike, and fewer of a job's are not all of it (own)."""

_OF_PORTS = frozenset({FaultClass.NETWORK_IB, FaultClass.NETWORK_ETH, FaultClass.NETWORK_LINK})
"""Of the network all nodes share what is behind their ports."""

_EACH_ITS_OWN = frozenset(
    {FaultClass.GPU_LOST, FaultClass.GPU_MEMORY_ECC, FaultClass.SILENT_CORRUPTION}
)
"""Devices that broke, each by itself, however many."""

_Key = tuple[str, FaultClass | None]


def without_shared_trouble(
    evidence: Sequence[Evidence], nodes: Collection[str]
) -> tuple[Evidence, ...]:
    """The evidence, where what a check finds at every node that it asked names none of them.

    Args:
        evidence: What was observed.
        nodes: The nodes of the job: it asked most of them; empty without one, then nothing is known
            of those that a check found sound.
    """
    asked: dict[str, set[str]] = defaultdict(set)
    found: dict[_Key, set[str]] = defaultdict(set)
    for item in filter(_is_of_a_node, evidence):
        asked[item.source].add(item.subject.node)
        if _is_against(item):
            found[item.kind, item.fault].add(item.subject.node)
    least = max(LEAST_NODES, MOST_SHARE * len(nodes))
    if not nodes or all(len(alike) < least for alike in found.values()):
        return tuple(evidence)
    shared = [
        item
        for item in evidence
        if _is_of_a_node(item)
        and _is_against(item)
        and len(found[item.kind, item.fault]) >= least
        and found[item.kind, item.fault] == asked[item.source]
    ]
    of_nobody = {_of_nobody(item, len(asked[item.source])) for item in shared}
    return (*(set(evidence) - set(shared)), *of_nobody)


def _is_of_a_node(item: Evidence) -> bool:
    """What a check measured there: not what ranks did or said, nor how the node was reached."""
    elsewhere = item.source in BEHAVIOUR or item.source in (SSH, DISKS_CHECK)
    derived = item.kind.startswith("job.")
    return bool(item.subject.node) and item.strength is None and not (elsewhere or derived)


def _is_against(item: Evidence) -> bool:
    """Equal hints name nobody anyway."""
    convicts = item.role is Role.ROOT and item.weight is Weight.CONVICTS
    return convicts and item.fault not in _EACH_ITS_OWN


def _of_nobody(item: Evidence, nodes: int) -> Evidence:
    """One for all of them that say the same."""
    text = f"{item.text}, and so it is at all {nodes} nodes"
    fault = FaultClass.NETWORK_SWITCH if item.fault in _OF_PORTS else item.fault
    subject = Subject("", item.subject.device)
    return replace(item, subject=subject, fault=fault, text=text, raw="", at=None)
