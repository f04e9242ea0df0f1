"""Why a late node is late: what its own checks hint at, and no other node's do.

A hint at heat or at a slow device is weak by itself. On the one node that all others wait for it
is the reason, as surely as the node is late: what slows a machine is named before its lateness.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from brctl.model.evidence import Evidence, Role, Weight
from brctl.model.evidence_kinds import RANKS_CHECK
from brctl.model.fault import Branch, FaultClass
from brctl.model.fault_catalogue import CATALOGUE

_SLOWS = frozenset(
    {FaultClass.THERMAL_POWER, FaultClass.PCIE, FaultClass.NVLINK, FaultClass.GPU_SLOW}
)
"""Classes of devices that go on, and more slowly; a node that fails is no slow one."""


def why_late(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """The evidence, where hints at what slows a node that convicts as late are as sure as that."""
    items = tuple(evidence)
    late = {i.subject.node for i in items if _is_late(i)}
    hints = [i for i in items if _may_slow(i)] if late else []
    own = _kinds_of_one_node(hints)
    return tuple(
        replace(
            item,
            weight=Weight.CONVICTS,
            text=f"{item.text}; all others wait for {item.subject.node}",
        )
        if item in hints and item.subject.node in late and item.kind in own
        else item
        for item in items
    )


def _is_late(item: Evidence) -> bool:
    late = item.fault is FaultClass.STRAGGLER_SLOW and item.weight is Weight.CONVICTS
    return late and item.source == RANKS_CHECK and bool(item.subject.node)


def _may_slow(item: Evidence) -> bool:
    measured = CATALOGUE[item.fault].branch is Branch.MACHINE if item.fault in _SLOWS else False
    return measured and item.role is Role.ROOT and item.weight is Weight.HINTS


def _kinds_of_one_node(hints: Sequence[Evidence]) -> set[str]:
    nodes: dict[str, set[str]] = defaultdict(set)
    for item in hints:
        nodes[item.kind].add(item.subject.node)
    return {kind for kind, found in nodes.items() if len(found) == 1}
