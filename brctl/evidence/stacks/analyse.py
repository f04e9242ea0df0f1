"""From the stacks of all ranks to the nodes that stop them.

Rules (ByteRobust, arXiv 2509.16293, section 5; where the paper is silent, decisions/0061):

1. Ranks with one normalised stack form a group. A group more than a third as large as the largest
   is dominant: several pipeline stages may wait healthily in different places.
2. Everybody else is an outlier, and so is every rank that did not answer.
3. Without outliers by size, ranks outside any collective are the outliers while others wait in one.
4. The smallest parallel group that covers all outliers is suspected: the one along exactly those
   axes in which they differ (two axes when a stage's tensor group hangs together). A node counts
   as a group, and is preferred when it covers them.
5. One wholly silent node beside outliers that its groups explain is the likelier cause.
6. Equal covers (fewest nodes, then fewest ranks) are all shown. A group of more than half of the
   job's nodes explains nothing.
7. No group covers them: the outliers' own nodes, unless these are so many that a common cause fits.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from brctl.evidence.stacks.snapshot import STOPPED, RankStack
from brctl.model.jobs.hang import ParallelGroup, StackAnalysis, StackGroup
from brctl.model.jobs.job import Job

DOMINANT_RATIO = 3
"""A group is dominant when it has more than a third of the largest group's ranks."""

COMMON_CAUSE_RATIO = 0.2
"""Outliers on more of the nodes than this are no few bad machines (own judgement)."""

NODE_AXIS = "node"

_COLLECTIVE = re.compile(
    r"all_?reduce|all_?gather|reduce_scatter|all_?to_?all|broadcast|barrier|batch_isend_irecv|"
    r"synchronize|finalize_backward|::wait$|ncclGroup|backward",
    re.IGNORECASE,
)
"""In a function's name: `synchronize.py` of multiprocessing holds locks."""

_FILE = re.compile(r"^[^:]*\.\w+:(?!:)")
"""What stands before the function; a native frame without a file has colons of its own."""

_HANDLE = re.compile(
    r"^(?:_functional_collectives\.py:(?:\w+\.)?(?:trigger_)?wait(?:_tensor)?"
    r"|(?:distributed_c10d|partition_parameters)\.py:(?:\w+\.)?wait)$"
)
"""Waits for a collective that was begun earlier, of torch and of DeepSpeed."""

_EXCHANGE = re.compile(
    r"^(?:distributed_c10d|p2p_communication|p2p|schedules)\.py:(?:\w+\.)?"
    r"(?:i?send|i?recv|batch_isend_irecv|(?:send|recv)_(?:for|back)ward\w*|_communicate|"
    r"_wait_batch_p2p|wait)$"
)
"""In the files of torch and of pipelines alone: a pipe and an HTTP client send, receive and wait
too, for no other rank."""

_INNER_FRAMES = 6
"""Frames from the innermost in which a wait shows; further out is the training loop."""


def analyse_stacks(stacks: Iterable[RankStack], job: Job) -> StackAnalysis:
    """One round of stacks of a job that stands still."""
    by_rank = {s.rank: s for s in stacks if 0 <= s.rank < job.world_size}
    answered = {rank: s.key for rank, s in by_rank.items() if s.key}
    silent = tuple(rank for rank in range(job.world_size) if rank not in answered)
    groups = _group(answered)
    outliers = _outliers(groups, silent)
    covers = covering_groups(outliers, job)
    choice = _choose(outliers, silent, groups, covers, job)
    rest = [StackGroup((), silent, dominant=False)] if silent else []
    return StackAnalysis(
        groups=(*groups, *rest),
        outliers=outliers,
        silent=silent,
        group=covers[0] if covers else None,
        candidates=tuple(covers),
        suspect_ranks=choice.ranks,
        suspect_nodes=choice.nodes,
        reason=choice.reason,
        notes=tuple(f"rank {s.rank}: {s.note}" for s in by_rank.values() if s.note),
    )


def _group(answered: dict[int, tuple[str, ...]]) -> list[StackGroup]:
    members: dict[tuple[str, ...], list[int]] = {}
    for rank in sorted(answered):
        members.setdefault(answered[rank], []).append(rank)
    ordered = sorted(members.items(), key=lambda item: (-len(item[1]), item[1][0]))
    largest = len(ordered[0][1]) if ordered else 0
    return [
        StackGroup(stack, tuple(ranks), dominant=len(ranks) * DOMINANT_RATIO > largest)
        for stack, ranks in ordered
    ]


def is_waiting(stack: Sequence[str]) -> bool:
    """Whether the innermost frames stand in a collective or a point-to-point operation."""
    return any(map(_is_collective, stack[:_INNER_FRAMES])) or in_exchange(stack)


def _is_collective(frame: str) -> bool:
    return bool(_COLLECTIVE.search(_FILE.sub("", frame)) or _HANDLE.search(frame))


def in_exchange(stack: Sequence[str]) -> bool:
    """Whether a rank sends to, or receives from, one other rank: it waits for that one."""
    inner = stack[:_INNER_FRAMES]
    return any(_EXCHANGE.search(frame) and not _HANDLE.search(frame) for frame in inner)


def _outliers(groups: Sequence[StackGroup], silent: Sequence[int]) -> tuple[int, ...]:
    odd = [rank for group in groups if not group.dominant for rank in group.ranks]
    if not odd and not silent:
        busy = [g for g in groups if not is_waiting(g.stack)]
        if len(busy) < len(groups):
            odd = [rank for group in busy for rank in group.ranks]
    return tuple(sorted({*odd, *silent}))


def covering_groups(outliers: Sequence[int], job: Job) -> list[ParallelGroup]:
    """The best groups that contain every outlier; more than one only when they are equally good."""
    if not outliers:
        return []
    node = job.node_of(outliers[0])
    found = [ParallelGroup(NODE_AXIS, job.ranks_on(node), (node,))]
    if len(outliers) > 1:
        found.append(_spanned(outliers, job))
    found = [g for g in found if set(outliers) <= set(g.ranks) and _explains(g, job)]
    best = min(((len(g.nodes), len(g.ranks)) for g in found), default=None)
    return [g for g in found if (len(g.nodes), len(g.ranks)) == best]


def _explains(group: ParallelGroup, job: Job) -> bool:
    return len(group.nodes) == 1 or len(group.nodes) * 2 <= len(job.nodes)


def _spanned(outliers: Sequence[int], job: Job) -> ParallelGroup:
    """The smallest product of axes around the outliers: the axes in which they differ."""
    coordinates = [job.coordinates(rank) for rank in outliers]
    varying = [
        axis for axis, _ in job.axes if len({coordinate[axis] for coordinate in coordinates}) > 1
    ]
    ranks = [0]
    stride = 1
    for axis, size in job.axes:
        steps = range(size) if axis in varying else (coordinates[0][axis],)
        ranks = [rank + step * stride for rank in ranks for step in steps]
        stride *= size
    ordered = tuple(sorted(ranks))
    return ParallelGroup("+".join(varying), ordered, _nodes(ordered, job))


def _neighbours(rank: int, job: Job) -> set[int]:
    """Ranks that share a group along one axis with this one."""
    found = {rank}
    stride = 1
    for _, size in job.axes:
        first = rank - (rank // stride % size) * stride
        found.update(range(first, first + size * stride, stride))
        stride *= size
    return found


def _nodes(ranks: Iterable[int], job: Job) -> tuple[str, ...]:
    return tuple(dict.fromkeys(job.node_of(rank) for rank in ranks))


@dataclass(frozen=True, slots=True)
class _Choice:
    """Whom to suspect, and why."""

    ranks: tuple[int, ...]
    nodes: tuple[str, ...]
    reason: str


def _choose(
    outliers: tuple[int, ...],
    silent: tuple[int, ...],
    groups: Sequence[StackGroup],
    covers: Sequence[ParallelGroup],
    job: Job,
) -> _Choice:
    if not outliers:
        return _Choice((), (), "all ranks stand in the same places: no rank differs")
    dead = _silent_node(silent, outliers, job)
    if dead:
        return _Choice(job.ranks_on(dead), (dead,), _SILENT_NODE.format(dead))
    stopped = tuple(r for g in groups if g.stack and g.stack[0] == STOPPED for r in g.ranks)
    if stopped:
        return _Choice(stopped, _nodes(stopped, job), "stopped by a signal while the others wait")
    if _wait_for_the_rest(outliers, groups):
        return _Choice((), (), "those that differ wait for all others: a common cause, no machine")
    ranks = _not_waiting(outliers, groups)
    nodes = _nodes(outliers, job)
    if covers:
        group = covers[0]
        tie = f"; {len(covers)} groups fit equally" if len(covers) > 1 else ""
        reason = f"smallest group of all outliers: {group.axis}, {len(group.nodes)} nodes"
        if group.axis == NODE_AXIS:
            reason = "the only node with ranks that stand elsewhere"
        return _Choice(ranks, group.nodes, reason + tie)
    if len(nodes) > max(1, len(job.nodes) * COMMON_CAUSE_RATIO):
        return _Choice(
            (), (), "outliers on many nodes share no group: a common cause, not machines"
        )
    return _Choice(ranks, nodes, "outliers share no parallel group: their own nodes")


_SILENT_NODE = "{} does not answer at all, and the other outliers wait beside it"


def _silent_node(silent: Sequence[int], outliers: Sequence[int], job: Job) -> str:
    """The only node none of whose ranks answered, when it explains the other outliers."""
    nodes = [n for n in _nodes(silent, job) if set(job.ranks_on(n)) <= set(silent)]
    if len(nodes) != 1:
        return ""
    own = set(job.ranks_on(nodes[0]))
    neighbours = {r for rank in own for r in _neighbours(rank, job)}
    return nodes[0] if set(outliers) <= own | neighbours else ""


def _wait_for_the_rest(outliers: Sequence[int], groups: Sequence[StackGroup]) -> bool:
    """The few are in a collective that the many never entered: it is the many that hang."""
    stack_of = {rank: group.stack for group in groups for rank in group.ranks}
    return all(is_waiting(stack_of.get(rank, ())) for rank in outliers) and not any(
        is_waiting(group.stack) for group in groups if group.dominant
    )


def _not_waiting(outliers: Sequence[int], groups: Sequence[StackGroup]) -> tuple[int, ...]:
    """Outliers outside every collective; all of them when every one waits."""
    stack_of = {rank: group.stack for group in groups for rank in group.ranks}
    busy = tuple(r for r in outliers if not is_waiting(stack_of.get(r, ())))
    return busy or tuple(outliers)
