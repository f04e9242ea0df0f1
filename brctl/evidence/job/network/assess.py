"""Which node the network fails at, by what the kernels of all nodes say of their TCP connections.

A node says how its own packets fare; no node says anything of another. A path between two nodes is
bad when either end lost packets on it, waits in time-outs or finds it far slower than the rest. One
node whose paths are all bad, while others have good ones, is where the trouble is. A path with too
little traffic to tell is neither.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import median

from brctl.evidence.job.busy_hosts import are_busy, loads_of
from brctl.evidence.job.history import CAUSE_SHARE, change_for_worse, slow_down, usual_pace
from brctl.evidence.job.network.busy_paths import TIMES_AS_LONG, busiest, shared_by
from brctl.evidence.job.network.odd_counters import odd_counters
from brctl.evidence.job.network.odd_interfaces import PACKET_SIZES, odd_interfaces, odd_rates
from brctl.evidence.job.network.paths import (
    CHECK,
    PathEnd,
    Paths,
    path_ends_of,
    paths_between,
)
from brctl.evidence.job.status import WAITING_PHASE
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import NodeReport

NO_NODES_PATHS = "job.network.paths"

LEAST_PATHS = 2
"""One bad path has two ends, and names neither."""

WAITING_SHARE = 0.3
"""Of a step spent in collectives, from where on the network may be what a young job waits for."""

MOSTLY_WAITING = 0.5
"""A job that spends half of its steps in collectives is as quick as its network (own)."""

SLOW_PATH = 0.7
"""How sure one busy path of a job that waits longer is: seen for 0.4 s, and once (own)."""

MOST_SHARE = 0.8
"""So many of all paths bad are no one node's."""


def assess_network(status: JobStatus, reports: Collection[NodeReport]) -> tuple[Evidence, ...]:
    """One observation for each node whose paths are all bad, or one for what no node explains.

    A path may be slow although nothing is lost on it: a limit holds packets back before they are
    sent. Then one end always has something to send while the others wait for it.
    """
    slower = _is_slower(status)
    # What was always so, or long ago, makes no job uneven.
    odd_weight = Weight.CONVICTS if slower else Weight.HINTS
    odd = tuple(odd_interfaces(status, reports, PACKET_SIZES, odd_weight))
    hurt = slower or change_for_worse(status.history) is not None
    weight = Weight.CONVICTS if hurt else Weight.HINTS
    ends = path_ends_of(status, reports)
    paths = known_paths(status, reports, ends)
    if odd:
        return odd
    rates = tuple(_odd_rates(status, reports, paths))
    told = any(item.weight is Weight.CONVICTS for item in rates)
    slow = None if told else _slow_path(status, ends)
    found = _of_paths(status, paths, slow, weight)
    waits = waits_longer(status) or _may_be_hurt(status)
    counters = odd_counters(status, reports) if waits and not status.stalled else ()
    return (*found, *rates, *counters, *_late_hosts(paths, reports))


def _is_slower(status: JobStatus) -> bool:
    return bool(status.stalled) or slow_down(status.history) is not None


def known_paths(
    status: JobStatus, reports: Collection[NodeReport], ends: Sequence[PathEnd]
) -> Paths:
    """What was lost long ago matters only to a job that is in trouble now, or may be."""
    spans = ("_now", "") if _is_slower(status) or _may_be_hurt(status) else ("_now",)
    return paths_between(ends, spans, loads_of(reports))


def _of_paths(
    status: JobStatus, paths: Paths, slow: Evidence | None, weight: Weight
) -> tuple[Evidence, ...]:
    """The nodes whose paths are all bad, else the one slow path, else what no node explains."""
    # Later on an answer may be older than what cut a node off.
    starts = status.step is None
    if nodes := [n for n in _centres(paths) if not (starts and paths.is_reached(n))]:
        return tuple(_of_node(node, paths, weight) for node in nodes)
    if slow is not None:
        return (slow,)
    return (_nobodys(paths, _weight_of_none(status, paths)),) if paths.trouble else ()


def _odd_rates(
    status: JobStatus, reports: Collection[NodeReport], paths: Paths
) -> Iterable[Evidence]:
    """Ports slower than the others' of their name, where steps wait for them, or nobody knows.

    A bad path elsewhere is seen, and that a step waits for a port is inferred: then it is a hint.
    """
    longer = waits_longer(status)
    if not longer and (status.stalled is not False or usual_pace(status) is not None):
        return
    for item in odd_rates(status, reports):
        elsewhere = any(item.subject.node not in pair for pair in paths.trouble)
        yield item if longer and not elsewhere else replace(item, weight=Weight.HINTS)


def _late_hosts(paths: Paths, reports: Collection[NodeReport]) -> Iterable[Evidence]:
    """Answers that are late where a host is busy: a hint, where most hosts are busy no lead."""
    if not paths.busy:
        return
    shared = frozenset.intersection(*paths.busy)
    every = are_busy(reports)
    words = "; ".join(paths.busy[pair] for pair in sorted(paths.busy, key=sorted)[:3])
    yield Evidence(
        kind="job.network.late",
        subject=Subject(next(iter(shared)) if len(shared) == 1 else ""),
        weight=Weight.CONTEXT if every else Weight.HINTS,
        fault=FaultClass.NETWORK_LINK,
        role=Role.CONTEXT if every else Role.ROOT,
        source=CHECK,
        text=f"answers are late, and one of their hosts is busy, which may be all: {words}",
        raw=words,
    )


def waits_longer(status: JobStatus) -> bool:
    """Its steps became longer, and rank 0 spends what they grew by in collectives."""
    change = None if status.stalled else slow_down(status.history)
    return change is not None and (change.wait_s or 0.0) >= CAUSE_SHARE * change.growth_s


def _slow_path(status: JobStatus, ends: Sequence[PathEnd]) -> Evidence | None:
    """What is slow though nothing is lost on it: a path, or a node that several ends share.

    Which end of one path is to blame nobody knows. A job that was as slow from its first step
    became no slower, and a node may be meant to send as it does: then it is a hint.
    """
    longer = waits_longer(status)
    slow = busiest(ends) if longer or _waits_much(status) else ()
    if not slow:
        return None
    place = shared_by(slow)
    several = len(slow) > 1
    steps = "steps became longer in" if longer else "most of every step is spent in"
    return Evidence(
        kind="job.network.slow-path",
        subject=Subject(next(iter(place)) if len(place) == 1 else ""),
        weight=Weight.CONVICTS if longer and not several else Weight.HINTS,
        fault=FaultClass.NETWORK_LINK,
        role=Role.ROOT,
        source=CHECK,
        text=f"{_sending(slow)}, and {steps} collectives: a limit {_where(place)}",
        raw=" ".join(f"busy_pct={end.values['busy_pct']:.1f}" for end in slow),
        strength=None if several else SLOW_PATH,
    )


def _sending(slow: Sequence[PathEnd]) -> str:
    said = ", ".join(
        f"{end.source} sends to {end.peer} for {end.values['busy_pct']:.0f} % of the time"
        for end in slow[:3]
    )
    if len(slow) == 1:
        return f"{said} while most others have nothing to send"
    return f"{said}, per packet {TIMES_AS_LONG:g} times as long as others that send as much"


def _where(place: Collection[str]) -> str:
    node, *other = sorted(place)
    return "on one of the two, or between them" if other else f"at {node}, or on its cable"


def _may_be_hurt(status: JobStatus) -> bool:
    """Nobody knows its pace, and its ranks spend much of every step waiting for each other."""
    return usual_pace(status) is None and _waiting_share(status) >= WAITING_SHARE


def _waits_much(status: JobStatus) -> bool:
    """It goes on, and the usual rank spends most of its step in collectives."""
    return status.stalled is False and _waiting_share(status) >= MOSTLY_WAITING


def _waiting_share(status: JobStatus) -> float:
    """Of the usual rank's step, what it spends in collectives; 0 where no rank tells."""
    shares = [v.wait_s / v.step_s for v in status.ranks if v.wait_s is not None and v.step_s]
    return median(shares) if shares else 0.0


def _centres(paths: Paths) -> tuple[str, ...]:
    """Nodes with nothing but bad paths, whose peers all have a good one."""
    if len(paths.trouble) >= MOST_SHARE * paths.count() and paths.count() > LEAST_PATHS + 1:
        return _hub(paths)
    centres = [
        node
        for node, peers in sorted(paths.seen.items())
        if len(peers) >= LEAST_PATHS and len(paths.bad_peers(node)) == len(peers)
    ]
    # Two that have only each other in common cannot be told apart; then nobody is named.
    joined = any(frozenset(pair) in paths.trouble for pair in combinations(centres, 2))
    return () if joined else tuple(centres)


def _hub(paths: Paths) -> tuple[str, ...]:
    """The one node that all bad paths share, where nearly every path is bad."""
    shared = frozenset.intersection(*paths.trouble)
    return tuple(shared) if len(shared) == 1 else ()


def _of_node(node: str, paths: Paths, weight: Weight) -> Evidence:
    peers = paths.bad_peers(node)
    words = "; ".join(paths.trouble[frozenset({node, peer})] for peer in peers[:3])
    return Evidence(
        kind="job.network.node",
        subject=Subject(node),
        weight=weight,
        fault=FaultClass.NETWORK_LINK,
        role=Role.ROOT,
        source=CHECK,
        text=f"all {len(peers)} paths of {node} are bad and its peers have good ones: {words}",
        raw=words,
    )


def _weight_of_none(status: JobStatus, paths: Paths) -> Weight:
    """Every rank waits, and packets of some path are not acknowledged: the job waits for that.

    Before their first step ranks wait for each other as well, whatever they call it.
    """
    phases = {view.phase for view in status.ranks if view.alive}
    together = phases == {WAITING_PHASE} or (bool(phases) and status.step is None)
    waits = bool(status.stalled) and together
    return Weight.CONVICTS if waits and paths.dead else Weight.HINTS


def _nobodys(paths: Paths, weight: Weight) -> Evidence:
    """Bad paths that no single node explains: a link between two, or what all share."""
    many = len(paths.trouble) > LEAST_PATHS and len(paths.trouble) * 2 > paths.count()
    pairs = sorted("-".join(sorted(pair)) for pair in paths.trouble)
    words = "; ".join(paths.trouble[pair] for pair in sorted(paths.trouble, key=sorted)[:3])
    where = "most paths are bad" if many else f"bad paths only between {', '.join(pairs[:4])}"
    return Evidence(
        kind=NO_NODES_PATHS,
        subject=Subject(""),
        weight=weight,
        fault=FaultClass.NETWORK_SWITCH if many else FaultClass.NETWORK_LINK,
        role=Role.ROOT,
        source=CHECK,
        text=f"{where}: {words}",
        raw=words,
    )
