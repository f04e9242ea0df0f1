"""Bad paths that no node explains, and that all lead into or out of one leaf: its uplinks lose."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from brctl.evidence.job.network.assess import (
    LEAST_PATHS,
    NO_NODES_PATHS,
    known_paths,
    waits_longer,
)
from brctl.evidence.job.network.paths import path_ends_of
from brctl.model.evidence import Evidence, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import NodeReport


def at_the_border_of_a_leaf(
    found: Iterable[Evidence],
    status: JobStatus,
    reports: Collection[NodeReport],
    leaves: Mapping[str, str],
) -> tuple[Evidence, ...]:
    """The evidence, where paths that were no node's are those across the border of a leaf.

    Args:
        found: What was observed of the job.
        status: The job.
        reports: What its nodes answered.
        leaves: The leaf of each node whose labels name one.
    """
    items = tuple(found)
    if not leaves or all(item.kind != NO_NODES_PATHS for item in items):
        return items
    crossed = _crossed(known_paths(status, reports, path_ends_of(status, reports)).trouble, leaves)
    sure = waits_longer(status)
    return tuple(
        _of_leaf(item, crossed, sure=sure) if crossed and item.kind == NO_NODES_PATHS else item
        for item in items
    )


def _of_leaf(item: Evidence, crossed: tuple[str, ...], *, sure: bool) -> Evidence:
    """Of two leaves with nothing but each other nobody knows which loses."""
    border = f"into or out of {crossed[0]}" if len(crossed) == 1 else f"from {' to '.join(crossed)}"
    return replace(
        item,
        subject=Subject("", f"leaf:{'+'.join(crossed)}"),
        fault=FaultClass.NETWORK_SWITCH,
        weight=Weight.CONVICTS if sure else item.weight,
        text=f"{item.text}; all of them lead {border}, and inside of a leaf none is bad",
    )


def _crossed(pairs: Collection[frozenset[str]], leaves: Mapping[str, str]) -> tuple[str, ...]:
    """The leaf whose border every pair crosses, at several of its nodes; two that face each."""
    borders = [{leaves.get(node, "") for node in pair} for pair in pairs]
    if len(borders) <= LEAST_PATHS or any(len(border) != 2 or "" in border for border in borders):
        return ()
    if frozenset.intersection(*pairs):
        return ()  # one node has all of them, and is as likely as its leaf
    nodes = frozenset.union(*pairs)
    shared = set.intersection(*borders)
    inside = {leaf: sum(leaves[node] == leaf for node in nodes) for leaf in shared}
    return tuple(sorted(leaf for leaf, count in inside.items() if 1 < count < len(nodes) - 1))
