"""Which node the network fails at, by what the kernels of all nodes say of their TCP connections.

A node says how its own packets fare; no node says anything of another. A path between two nodes is
bad when either end lost packets on it, waits in time-outs or finds it far slower than the rest. One
node whose paths are all bad, while others have good ones, is where the trouble is. A path with too
little traffic to tell is neither.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from brctl.evidence.job.history import slow_down
from brctl.evidence.operators import is_number
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import NodeReport

CHECK = "fabric.tcp"
MTU = "fabric.eth.mtu"

MAJORITY = 2
"""So many agree at least before one that differs is the odd one."""

LOST_SHARE = 0.003
"""A sound data-centre network loses next to nothing; 0.3 % already costs TCP its speed (own)."""

LEAST_SEGMENTS = 50
"""Of fewer segments the share of lost ones says little."""

LEAST_LOST = 3

TIMEOUTS_IN_A_ROW = 3
"""Three time-outs of one segment, each twice as long: the path carries nothing (own)."""

LATE_MS = 5.0
LATE_RATIO = 10.0
"""Later than this and so many times a good path's is a sick path inside one site (own)."""

NARROW_SHARE = 0.7
"""Of the usual packet size: a path that carries less was set up, or discovered, differently."""

LEAST_PATHS = 2
"""One bad path has two ends, and names neither."""

MOST_SHARE = 0.8
"""So many of all paths bad are no one node's."""


@dataclass(frozen=True, slots=True)
class _Way:
    """What one node says of its connections to another."""

    source: str
    peer: str
    values: Mapping[str, float]

    @property
    def delay_ms(self) -> float | None:
        return self.values.get("delay_ms")


@dataclass(frozen=True, slots=True)
class _Paths:
    """All pairs of nodes with connections, and what is wrong with the bad ones."""

    seen: Mapping[str, frozenset[str]]
    trouble: Mapping[frozenset[str], str]

    def bad_peers(self, node: str) -> tuple[str, ...]:
        return tuple(sorted(p for p in self.seen[node] if frozenset({node, p}) in self.trouble))


def assess_network(status: JobStatus, reports: Collection[NodeReport]) -> tuple[Evidence, ...]:
    """One observation for each node whose paths are all bad, or one for what no node explains."""
    hurt = bool(status.stalled) or slow_down(status.history) is not None
    weight = Weight.CONVICTS if hurt else Weight.HINTS
    odd = tuple(_odd_packet_sizes(status, reports, weight))
    # What was lost long ago matters only to a job that is in trouble now.
    paths = _paths(_ways(status, reports), ("_now", "") if hurt else ("_now",))
    if odd or not paths.trouble:
        return odd
    nodes = _centres(paths)
    if not nodes:
        return (_nobodys(paths),)
    return tuple(_of_node(node, paths, weight) for node in nodes)


def _odd_packet_sizes(
    status: JobStatus, reports: Collection[NodeReport], weight: Weight
) -> Iterable[Evidence]:
    """Few nodes of the job whose interface of one name sends other packets than the others'."""
    by_nic: dict[str, dict[str, float]] = {}
    for report in reports:
        for m in (m for result in report.results for m in result.measurements):
            if m.name == MTU and is_number(m.value) and report.node in status.job.nodes:
                by_nic.setdefault(m.subject, {})[report.node] = float(m.value)
    for nic, sizes in sorted(by_nic.items()):
        usual, nodes = Counter(sizes.values()).most_common(1)[0]
        for node, size in sorted(sizes.items()):
            if nodes >= MAJORITY and nodes * 2 > len(sizes) and size < usual:
                yield Evidence(
                    kind=MTU,
                    subject=Subject(node, nic),
                    weight=weight,
                    fault=FaultClass.NETWORK_ETH,
                    role=Role.ROOT,
                    source="fabric.eth",
                    text=f"{nic.removeprefix('nic:')} of {node} sends packets of {size:.0f} bytes,"
                    f" {nodes} other nodes send {usual:.0f}",
                    raw=f"{MTU} {nic} {size:.0f}",
                )


def _ways(status: JobStatus, reports: Iterable[NodeReport]) -> tuple[_Way, ...]:
    """What every node of the job says of every other; an address two nodes claim is nobody's."""
    rows = {report.node: _rows(report) for report in reports if report.node in status.job.nodes}
    owners: dict[str, set[str]] = {}
    for node, values in rows.items():
        for name, subject in values:
            if name == "own_address":
                owners.setdefault(subject.removeprefix("address:"), set()).add(node)
    found = []
    for node, values in rows.items():
        by_peer: dict[str, dict[str, float]] = {}
        for (name, subject), value in values.items():
            if subject.startswith("peer:"):
                by_peer.setdefault(subject.removeprefix("peer:"), {})[name] = value
        for peer, read in by_peer.items():
            owner = owners.get(peer, set()) - {node}
            if len(owners.get(peer, ())) == 1 and owner:
                found.append(_Way(node, next(iter(owner)), read))
    return tuple(found)


def _rows(report: NodeReport) -> dict[tuple[str, str], float]:
    return {
        (m.name.removeprefix(f"{CHECK}."), m.subject): float(m.value)
        for result in report.results
        if result.check == CHECK
        for m in result.measurements
        if is_number(m.value) or m.value is True
    }


def _paths(ways: Sequence[_Way], spans: Sequence[str]) -> _Paths:
    seen: dict[str, set[str]] = {}
    trouble: dict[frozenset[str], str] = {}
    # Quartiles of the good side: in a small fleet half of all paths lead to the one bad node.
    delays = sorted(way.delay_ms for way in ways if way.delay_ms is not None)
    mtus = sorted(way.values["path_mtu"] for way in ways if "path_mtu" in way.values)
    usual_ms = delays[len(delays) // 4] if delays else 0.0
    usual_mtu = mtus[len(mtus) * 3 // 4] if mtus else 0.0
    for way in sorted(ways, key=lambda way: (way.source, way.peer)):
        what = _trouble(way, usual_ms, usual_mtu, spans)
        if what:
            trouble.setdefault(frozenset({way.source, way.peer}), f"{way.source}: {what}")
        if what or any(_sent(way, span) >= LEAST_SEGMENTS for span in spans):
            for one, other in ((way.source, way.peer), (way.peer, way.source)):
                seen.setdefault(one, set()).add(other)
    return _Paths({node: frozenset(peers) for node, peers in seen.items()}, trouble)


def _sent(way: _Way, span: str) -> float:
    return way.values.get(f"segments{span}", 0.0)


def _trouble(way: _Way, usual_ms: float, usual_mtu: float, spans: Sequence[str]) -> str:
    """What is wrong on the way from a node to its peer; "" for nothing."""
    read = way.values
    if (row := read.get("timeouts_in_a_row", 0)) >= TIMEOUTS_IN_A_ROW:
        return f"packets to {way.peer} are not acknowledged, {row:.0f} time-outs in a row"
    for span in spans:
        lost, sent = read.get(f"lost{span}", 0.0), _sent(way, span)
        if sent >= LEAST_SEGMENTS and lost >= max(LEAST_LOST, LOST_SHARE * sent):
            return f"{lost / sent:.1%} of {sent:.0f} packets to {way.peer} were lost"
    if way.delay_ms is not None and way.delay_ms >= max(LATE_MS, LATE_RATIO * usual_ms):
        return f"{way.delay_ms:.3g} ms to {way.peer} and back, usually {usual_ms:.3g} ms"
    mtu = read.get("path_mtu")
    if mtu is not None and mtu < NARROW_SHARE * usual_mtu:
        return f"packets to {way.peer} may have {mtu:.0f} bytes, usually {usual_mtu:.0f}"
    return ""


def _centres(paths: _Paths) -> tuple[str, ...]:
    """Nodes with nothing but bad paths, whose peers all have a good one."""
    if len(paths.trouble) >= MOST_SHARE * _count(paths) and _count(paths) > LEAST_PATHS + 1:
        return _hub(paths)
    centres = [
        node
        for node, peers in sorted(paths.seen.items())
        if len(peers) >= LEAST_PATHS and len(paths.bad_peers(node)) == len(peers)
    ]
    # Two that have only each other in common cannot be told apart; then nobody is named.
    joined = any(frozenset(pair) in paths.trouble for pair in combinations(centres, 2))
    return () if joined else tuple(centres)


def _hub(paths: _Paths) -> tuple[str, ...]:
    """The one node that all bad paths share, where nearly every path is bad."""
    shared = frozenset.intersection(*paths.trouble)
    return tuple(shared) if len(shared) == 1 else ()


def _count(paths: _Paths) -> int:
    return len({frozenset({node, peer}) for node, peers in paths.seen.items() for peer in peers})


def _of_node(node: str, paths: _Paths, weight: Weight) -> Evidence:
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


def _nobodys(paths: _Paths) -> Evidence:
    """Bad paths that no single node explains: a link between two, or what all share."""
    many = len(paths.trouble) > LEAST_PATHS and len(paths.trouble) * 2 > _count(paths)
    pairs = sorted("-".join(sorted(pair)) for pair in paths.trouble)
    words = "; ".join(paths.trouble[pair] for pair in sorted(paths.trouble, key=sorted)[:3])
    where = "most paths are bad" if many else f"bad paths only between {', '.join(pairs[:4])}"
    return Evidence(
        kind="job.network.paths",
        subject=Subject(""),
        weight=Weight.HINTS,
        fault=FaultClass.NETWORK_SWITCH if many else FaultClass.NETWORK_LINK,
        role=Role.ROOT,
        source=CHECK,
        text=f"{where}: {words}",
        raw=words,
    )
