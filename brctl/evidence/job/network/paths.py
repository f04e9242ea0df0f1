"""The paths between a job's nodes: what the kernels at both ends say, and which of them are bad."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from brctl.evidence.operators import is_number
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import NodeReport

CHECK = "fabric.tcp"

LOST_SHARE = 0.003
"""A sound data-centre network loses next to nothing; 0.3 % already costs TCP its speed (own)."""

LEAST_SEGMENTS = 50
"""Of fewer segments the share of lost ones says little."""

LEAST_LOST = 3

TIMEOUTS_IN_A_ROW = 3
"""Three time-outs of one segment, each twice as long: the path carries nothing (own)."""

LATE_MS = 5.0
LATE_RATIO = 10.0
"""Later than this and so many times a good path's is a sick path inside one site (own). On a host
with more to do than processors an answer may wait for one as well: so many times as long."""

LOAD_EXCUSES = 4.0
"""No load makes an answer later than that: it also counts those that wait for a disk or a file
server, behind a sick network say, and they take no processor (own)."""

NARROW_SHARE = 0.7
"""Of the usual packet size: a path that carries less was set up, or discovered, differently."""


@dataclass(frozen=True, slots=True)
class PathEnd:
    """A path as the kernel at one end of it has it: one node's connections to another."""

    source: str
    peer: str
    values: Mapping[str, float]

    @property
    def delay_ms(self) -> float | None:
        """There and back."""
        return self.values.get("delay_ms")


@dataclass(frozen=True, slots=True)
class Paths:
    """All pairs of nodes with connections, and what is wrong with the bad ones.

    Attributes:
        dead: Those of the bad ones on which nothing is acknowledged.
        answered: Those on which packets, however few, are acknowledged, and that are not bad.
        busy: Those that are late, by no more than a busy host may explain, and are not bad.
    """

    seen: Mapping[str, frozenset[str]]
    trouble: Mapping[frozenset[str], str]
    dead: frozenset[frozenset[str]] = frozenset()
    answered: frozenset[frozenset[str]] = frozenset()
    busy: Mapping[frozenset[str], str] = field(default_factory=dict)

    def bad_peers(self, node: str) -> tuple[str, ...]:
        """Those of its peers to which its path is bad."""
        return tuple(sorted(p for p in self.seen[node] if frozenset({node, p}) in self.trouble))

    def is_reached(self, node: str) -> bool:
        """Whether some peers' packets arrive where those of all the bad ones do not."""
        bad = {pair for pair in self.trouble if node in pair}
        return bad <= self.dead and any(node in pair for pair in self.answered)

    def count(self) -> int:
        """Paths of which enough is known to tell."""
        return len({frozenset({node, peer}) for node, peers in self.seen.items() for peer in peers})


def path_ends_of(status: JobStatus, reports: Iterable[NodeReport]) -> tuple[PathEnd, ...]:
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
                found.append(PathEnd(node, next(iter(owner)), read))
    return tuple(found)


def _rows(report: NodeReport) -> dict[tuple[str, str], float]:
    return {
        (m.name.removeprefix(f"{CHECK}."), m.subject): float(m.value)
        for m in report.measured_by(CHECK)
        if is_number(m.value) or m.value is True
    }


def paths_between(
    ends: Sequence[PathEnd],
    spans: Sequence[str],
    loads: Mapping[str, float] = MappingProxyType({}),
) -> Paths:
    """All pairs with traffic enough to tell in one of the spans, or with trouble.

    Args:
        ends: What the nodes say of their paths.
        spans: Which of their counters count: "_now", "" for since the connections were made.
        loads: How many processes want each processor of a node.
    """
    seen: dict[str, set[str]] = {}
    trouble: dict[frozenset[str], str] = {}
    busy: dict[frozenset[str], str] = {}
    # Quartiles of the good side: in a small fleet half of all paths lead to the one bad node.
    delays = sorted(end.delay_ms for end in ends if end.delay_ms is not None)
    mtus = sorted(end.values["path_mtu"] for end in ends if "path_mtu" in end.values)
    usual_ms = delays[len(delays) // 4] if delays else 0.0
    usual_mtu = mtus[len(mtus) * 3 // 4] if mtus else 0.0
    not_sooner_ms = LATE_RATIO * usual_ms
    for end in sorted(ends, key=lambda end: (end.source, end.peer)):
        pair = frozenset({end.source, end.peer})
        late_ms = max(LATE_MS * _load(end, loads), not_sooner_ms)
        what = _trouble(end, (usual_ms, late_ms), usual_mtu, spans)
        if what:
            trouble.setdefault(pair, f"{end.source}: {what}")
        elif end.delay_ms is not None and end.delay_ms >= max(LATE_MS, not_sooner_ms):
            busy.setdefault(pair, f"{end.source}: {_late(end, usual_ms)}")
        if what or any(_sent(end, span) >= LEAST_SEGMENTS for span in spans):
            for one, other in ((end.source, end.peer), (end.peer, end.source)):
                seen.setdefault(one, set()).add(other)
    dead = frozenset(frozenset({end.source, end.peer}) for end in ends if _is_dead(end))
    busy = {pair: words for pair, words in busy.items() if pair not in trouble}
    answered = {frozenset({end.source, end.peer}) for end in ends if end.delay_ms is not None}
    return Paths(
        {node: frozenset(peers) for node, peers in seen.items()},
        trouble,
        dead,
        frozenset(answered - trouble.keys()),
        busy,
    )


def _is_dead(end: PathEnd) -> bool:
    return end.values.get("timeouts_in_a_row", 0) >= TIMEOUTS_IN_A_ROW


def _sent(end: PathEnd, span: str) -> float:
    return end.values.get(f"segments{span}", 0.0)


def _load(end: PathEnd, loads: Mapping[str, float]) -> float:
    """Of the busier of its two hosts, bounded; at least 1: an idle host answers no sooner."""
    return min(LOAD_EXCUSES, max(1.0, loads.get(end.source, 1.0), loads.get(end.peer, 1.0)))


def _late(end: PathEnd, usual_ms: float) -> str:
    return f"{end.delay_ms:.3g} ms to {end.peer} and back, usually {usual_ms:.3g} ms"


def _trouble(
    end: PathEnd, delays_ms: tuple[float, float], usual_mtu: float, spans: Sequence[str]
) -> str:
    """What is wrong on the path from a node to its peer; "" for nothing.

    `delays_ms` are the usual delay and the one from which on a path is late.
    """
    usual_ms, late_ms = delays_ms
    read = end.values
    if _is_dead(end):
        row = read["timeouts_in_a_row"]
        return f"packets to {end.peer} are not acknowledged, {row:.0f} time-outs in a row"
    for span in spans:
        lost, sent = read.get(f"lost{span}", 0.0), _sent(end, span)
        if sent >= LEAST_SEGMENTS and lost >= max(LEAST_LOST, LOST_SHARE * sent):
            return f"{lost / sent:.1%} of {sent:.0f} packets to {end.peer} were lost"
    if end.delay_ms is not None and end.delay_ms >= late_ms:
        return _late(end, usual_ms)
    mtu = read.get("path_mtu")
    if mtu is not None and mtu < NARROW_SHARE * usual_mtu:
        return f"packets to {end.peer} may have {mtu:.0f} bytes, usually {usual_mtu:.0f}"
    return ""
