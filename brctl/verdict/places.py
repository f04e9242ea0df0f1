"""Where a fault that no machine has came to light: the ranks that failed by themselves.

A verdict that blames nobody still knows which rank raised, was killed or left first. That place is
where somebody reads the log; it is no suspect, nothing is evicted and no guard counts it.
"""

from collections.abc import Collection, Iterable

from brctl.model.evidence import Evidence, Role
from brctl.model.evidence_kinds import TOLD_FIRST
from brctl.model.fault import Branch, FaultClass
from brctl.model.fault_catalogue import CATALOGUE
from brctl.model.verdict import Place

PLACES_SHARE = 0.2
"""What came to light on more of the nodes has no place (own; as with ranks that are absent)."""

_RANK = "rank:"


def places(
    fault: FaultClass, chain: Iterable[Evidence], nodes: Collection[str]
) -> tuple[Place, ...]:
    """The ranks that failed by themselves, by node; none where they are many or all.

    A class that machines have names its machines or nobody. Who says that it was told to stop began
    nothing, unless the others ended otherwise.

    Args:
        fault: The class of the verdict, which names no node.
        chain: What was observed.
        nodes: The nodes of the job.
    """
    if CATALOGUE[fault].per_node:
        return ()
    ranks: dict[str, set[int]] = {}
    for item in chain:
        if _failed_by_itself(item, fault):
            ranks.setdefault(item.subject.node, set()).add(_rank(item))
    if not ranks or len(ranks) > max(1, PLACES_SHARE * len(nodes)) or len(nodes) < 2:
        return ()
    return tuple(Place(node, tuple(sorted(found))) for node, found in sorted(ranks.items()))


def _failed_by_itself(item: Evidence, fault: FaultClass) -> bool:
    """A root of this class, or one that this class makes on its own node."""
    if item.role is not Role.ROOT or not item.subject.node or item.fault is None:
        return False
    if CATALOGUE[fault].branch is Branch.TOLD:
        own = item.kind == TOLD_FIRST
    else:
        own = item.fault is fault or item.fault in CATALOGUE[fault].explains
    return own and item.subject.device.startswith(_RANK)


def _rank(item: Evidence) -> int:
    return int(item.subject.device.removeprefix(_RANK))
