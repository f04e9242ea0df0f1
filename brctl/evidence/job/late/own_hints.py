"""Why a late node is late: what its own checks hint at, and no other node's do.

A hint at heat or at a slow device is weak by itself. On the one node that all others wait for it
is the reason, as surely as the node is late: what slows a machine is named before its lateness.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace

from brctl.model.evidence import Evidence, Role, Weight
from brctl.model.evidence_kinds import RANKS_CHECK
from brctl.model.fault import FaultClass

_SLOWS = frozenset(
    {FaultClass.THERMAL_POWER, FaultClass.PCIE, FaultClass.NVLINK, FaultClass.GPU_SLOW}
)
"""Classes of devices that go on, and more slowly; a node that fails is no slow one."""

_MEASURED = frozenset({"host.kernel", "host.cpu", "gpu.pcie", "gpu.nvlink"})
_OF_CARDS = frozenset({"gpu.clocks.event_reasons", "gpu.clocks.temperature_margin_c"})
"""What a check reads of the device itself. What compares cards knows by itself which it may call
sure, and a card that is warmer than the others may only be the one that works."""


def why_late(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """The evidence, where hints at what slows a node that convicts as late are as sure as that."""
    items = tuple(evidence)
    late = {i.subject.node for i in items if _is_late(i)}
    own = _kinds_of(late, filter(_may_slow, items)) if late else set()
    return tuple(_as_sure(i) if i.kind in own and _may_slow(i) else i for i in items)


def _is_late(item: Evidence) -> bool:
    late = item.fault is FaultClass.STRAGGLER_SLOW and item.weight is Weight.CONVICTS
    return late and item.source == RANKS_CHECK and bool(item.subject.node)


def _may_slow(item: Evidence) -> bool:
    measured = item.source in _MEASURED or item.kind in _OF_CARDS
    derived = item.kind.startswith("job.") or item.strength is not None
    hints = item.role is Role.ROOT and item.weight is Weight.HINTS
    return hints and item.fault in _SLOWS and measured and not derived


def _kinds_of(late: Collection[str], hints: Iterable[Evidence]) -> set[str]:
    """Kinds of hints that no other node has than the late ones."""
    nodes: dict[str, set[str]] = defaultdict(set)
    for item in hints:
        nodes[item.kind].add(item.subject.node)
    return {kind for kind, found in nodes.items() if found <= set(late)}


def _as_sure(item: Evidence) -> Evidence:
    text = f"{item.text}; all others wait for {item.subject.node}"
    return replace(item, weight=Weight.CONVICTS, text=text)
