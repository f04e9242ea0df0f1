"""Evidence that cannot all hold: what to make of it before anything is weighed.

Every node speaks about itself alone. Where sources that each read all ranks name different nodes,
one of them was lied to or came too late: then each is a hint, and nobody is convicted. Where ranks
on most nodes stand elsewhere than the rest, none of these nodes is to blame. Where every
node behind one leaf is silent at once, the leaf is what they have in common; where one directory
is full on every node, no node is to blame for it. Where most nodes were not reached at all, what
they share is the way to them, and nothing is held against any of them. Probes that wait for one
driver are one witness, where no rank of that node bears them out and the job goes on, or has a
cause on another node.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from brctl.model.command import NO_LOGIN
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import DISKS_CHECK, DRIVER_HANG, SILENT_NODE, SSH, WAY_TO_NODES
from brctl.model.fault import FaultClass
from brctl.model.sweeps.reach import UnreachedTogether
from brctl.verdict.belief import BEHAVIOUR
from brctl.verdict.shared_trouble import without_shared_trouble

_SILENT_LEAF = "topology.leaf.silent"

_NO_LOGIN = frozenset(f"node.{outcome.value}" for outcome in NO_LOGIN)

LATE_PROBES = 2
"""One probe of a driver may be late by itself; more of them wait for what they share (own)."""

LEAST_BEHIND_A_LEAF = 2
"""One silent node is a node; two that are all of their leaf are the leaf (own)."""


def agreed(
    evidence: Iterable[Evidence],
    leaves: Mapping[str, str],
    unreached: UnreachedTogether | None = None,
    nodes: Collection[str] = (),
    stalled: bool | None = None,
) -> tuple[Evidence, ...]:
    """The evidence with contradictions as hints, and with leaves in place of their nodes."""
    sound = _nobodys_hang(_without_contradictions(tuple(evidence)), nodes)
    sound = _kernel_runs_beside_a_hung_driver(sound)
    sound = _one_witness(sound, advances=stalled is False) if nodes else sound
    by_leaf = _by_leaf(sound, leaves)
    return without_shared_trouble(_full_everywhere(_by_way(by_leaf, unreached)), nodes)


def _by_way(
    evidence: Sequence[Evidence], unreached: UnreachedTogether | None
) -> tuple[Evidence, ...]:
    """Nodes that were not reached are victims of the way to them, unless one leaf explains all."""
    if unreached is None or _is_behind_a_leaf(evidence, unreached):
        return tuple(evidence)
    kept = [
        replace(item, role=Role.VICTIM)
        if item.role is Role.ROOT
        and (item.subject.node in unreached.nodes or item.kind == _SILENT_LEAF)
        else item
        for item in evidence
    ]
    return (*kept, _way(unreached))


def _is_behind_a_leaf(evidence: Sequence[Evidence], unreached: UnreachedTogether) -> bool:
    """Whether one silent leaf explains every node that was not reached."""
    named = {i.subject.node for i in evidence if i.fault in _OF_SILENCE and i.role is Role.ROOT}
    return not named & set(unreached.nodes) and [i.kind for i in evidence].count(_SILENT_LEAF) == 1


def _kernel_runs_beside_a_hung_driver(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """A node whose kernel still answers TCP is a hint where the driver of one other hangs.

    All ranks may stand in the all-reduce for that driver; a login that fails stops no job.
    """
    asked: dict[str, set[str]] = {}
    for item in evidence:
        if item.kind == DRIVER_HANG and item.role is Role.ROOT:
            asked.setdefault(item.subject.node, set()).add(item.source)
    hung = [node for node, checks in asked.items() if len(checks) >= LATE_PROBES]
    answers = {item.subject.node for item in evidence if item.kind in _NO_LOGIN}
    if len(asked) != 1 or not hung:
        return tuple(evidence)
    why = f"; its kernel takes connections, and the driver of {hung[0]} answers nobody"
    return tuple(
        replace(item, weight=Weight.HINTS, text=item.text + why)
        if item.kind == SILENT_NODE
        and item.subject.node in answers
        and item.weight is Weight.CONVICTS
        else item
        for item in evidence
    )


def _one_witness(evidence: Sequence[Evidence], *, advances: bool) -> tuple[Evidence, ...]:
    """Of the probes that waited for a node's driver one, where none of its ranks is in trouble.

    A job that stands still with no cause elsewhere may stand still for that driver. A hint of
    another machine is no cause; that other drivers are late too, or a rank in trouble, may be.
    """
    roots = [i for i in evidence if i.role is Role.ROOT]
    borne_out = {i.subject.node for i in roots if i.source in BEHAVIOUR}
    accused = {i.subject.node for i in roots if _may_stop_a_job(i)} - {""}
    waited: dict[str, list[Evidence]] = {}
    for item in evidence:
        node = item.subject.node
        elsewhere = advances or bool(accused - {node})
        if item.kind == DRIVER_HANG and node not in borne_out and elsewhere:
            waited.setdefault(node, []).append(item)
    told = {min(items, key=lambda i: i.source) for items in waited.values()}
    further = {item for items in waited.values() for item in items} - told
    return tuple(
        replace(item, weight=Weight.CONTEXT, role=Role.CONTEXT) if item in further else item
        for item in evidence
    )


def _may_stop_a_job(item: Evidence) -> bool:
    if item.weight is Weight.HINTS:
        return item.source in BEHAVIOUR or item.kind == DRIVER_HANG
    return item.weight is Weight.CONVICTS


def _way(unreached: UnreachedTogether) -> Evidence:
    return Evidence(
        kind=WAY_TO_NODES,
        subject=Subject("", "controller"),
        weight=Weight.HINTS,
        fault=FaultClass.UNKNOWN,
        role=Role.ROOT,
        source=SSH,
        text=f"{unreached.title}: {unreached.why}",
    )


def _full_everywhere(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """A file system that is full on all nodes is shared, or what the job writes on each.

    What a rank said of a full disk follows from it.
    """
    on_disks = [item for item in evidence if item.source == DISKS_CHECK and item.subject.node]
    asked = {item.subject.node for item in on_disks}
    full: dict[str, set[str]] = {}
    for item in on_disks:
        if item.fault is FaultClass.DISK_FULL and item.weight is Weight.CONVICTS:
            full.setdefault(item.subject.device, set()).add(item.subject.node)
    shared = {device for device, nodes in full.items() if nodes == asked and len(nodes) > 1}
    return tuple(
        replace(item, subject=Subject("", item.subject.device))
        if item.fault is FaultClass.DISK_FULL
        and (item.subject.device in shared or (shared and item.source != DISKS_CHECK))
        else item
        for item in evidence
    )


def _without_contradictions(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    named: dict[FaultClass, dict[str, set[str]]] = {}
    for item in evidence:
        if _convicts_a_rank(item) and item.fault is not None:
            by_source = named.setdefault(item.fault, {})
            by_source.setdefault(item.source, set()).add(item.subject.node)
    torn = {fault for fault, by_source in named.items() if _disagree(list(by_source.values()))}
    return tuple(
        replace(item, weight=Weight.HINTS, text=f"{item.text}; another source names another node")
        if _convicts_a_rank(item) and item.fault in torn
        else item
        for item in evidence
    )


def _nobodys_hang(evidence: Sequence[Evidence], nodes: Collection[str]) -> tuple[Evidence, ...]:
    """Ranks on most nodes that stand elsewhere have that in common: no node of them is named."""
    hints = [i for i in evidence if _hints_at_a_hang(i)]
    if 2 * len({item.subject.node for item in hints}) <= len(nodes) or len(nodes) < 2:
        return tuple(evidence)
    return tuple(
        replace(item, subject=Subject("", item.subject.device)) if item in hints else item
        for item in evidence
    )


def _hints_at_a_hang(item: Evidence) -> bool:
    return (
        item.fault is FaultClass.HANG_MISMATCH
        and item.weight is Weight.HINTS
        and item.role is Role.ROOT
        and item.source in BEHAVIOUR
        and bool(item.subject.node)
    )


def _convicts_a_rank(item: Evidence) -> bool:
    return (
        item.weight is Weight.CONVICTS
        and item.role is Role.ROOT
        and item.source in BEHAVIOUR
        and bool(item.subject.node)
    )


def _disagree(named: Sequence[set[str]]) -> bool:
    return any(not one & other for one in named for other in named)


def _by_leaf(evidence: Sequence[Evidence], leaves: Mapping[str, str]) -> tuple[Evidence, ...]:
    """Nodes of a silent leaf become its victims."""
    dark = _dark_leaves(evidence, leaves)
    behind = {node for nodes in dark.values() for node in nodes}
    kept = [
        replace(item, role=Role.VICTIM)
        if item.subject.node in behind and item.fault in _OF_SILENCE
        else item
        for item in evidence
    ]
    return (*kept, *(_leaf(name, nodes) for name, nodes in dark.items()))


_OF_SILENCE = (FaultClass.NODE_FAILURE, FaultClass.NETWORK_SWITCH)


def _dark_leaves(
    evidence: Sequence[Evidence], leaves: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Leaves behind which every node that was asked is silent, while others answer."""
    spoken = {item.subject.node for item in evidence if item.role is Role.ROOT}
    silent = {
        item.subject.node
        for item in evidence
        if item.fault in _OF_SILENCE and item.source == SSH and item.weight is not Weight.CLEARS
    }
    behind: dict[str, list[str]] = {}
    for node, leaf in sorted(leaves.items()):
        behind.setdefault(leaf, []).append(node)
    dark = {
        leaf: tuple(nodes)
        for leaf, nodes in behind.items()
        if len(nodes) >= LEAST_BEHIND_A_LEAF and set(nodes) <= silent & spoken
    }
    return dark if len(dark) < len(behind) else {}


def _leaf(name: str, nodes: Sequence[str]) -> Evidence:
    return Evidence(
        kind=_SILENT_LEAF,
        subject=Subject("", f"leaf:{name}"),
        weight=Weight.CONVICTS,
        fault=FaultClass.NETWORK_SWITCH,
        role=Role.ROOT,
        source="topology",
        text=f"all {len(nodes)} nodes behind {name} are silent, others answer; they are"
        f" {', '.join(nodes[:8])}",
    )
