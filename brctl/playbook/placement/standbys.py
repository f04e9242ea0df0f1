"""Which standby takes which lost node's place: how soon it can start against where it stands.

Both are seconds: a standby that is not prepared delays the start once, one in another domain slows
every step until the next stop. So a cold one in the right place may beat a parked one elsewhere.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from brctl.playbook.placement.domains import Domains
from brctl.playbook.placement.spread import SLOWER_A_DOMAIN, GroupPlaces, Spread, price_of, spreads

PARKED_S, WARM_S, COLD_S = 0.0, 60.0, 240.0
"""What a start waits longer than for parked processes. Cold: the middle of ByteRobust's reschedule
minus warm standby, 182 to 308 s for 128 to 1,024 machines; warm, which spares the environment, is
assumed."""


@dataclass(frozen=True, slots=True)
class ReadyNode:
    """A node that could take a place.

    Attributes:
        start_s: How much longer the start of the job takes with it than with a parked one.
    """

    node: str
    start_s: float


@dataclass(frozen=True, slots=True)
class StandbyChoice:
    """Who takes whose place.

    Attributes:
        standby_of: By lost node, in the order they were named; without those nobody is left for.
        start_s: What the start waits for the least prepared of them.
        slower_by: The assumed share of a step that the widest group costs then.
        spreads: How the job stands then.
    """

    standby_of: Mapping[str, str]
    start_s: float
    slower_by: float
    spreads: tuple[Spread, ...]

    def cost_s(self, uptime_s: float) -> float:
        """Seconds lost until the next stop, which may never come."""
        return self.start_s + (self.slower_by * uptime_s if self.slower_by else 0.0)


@dataclass(frozen=True, slots=True)
class LostNodes:
    """A job that lost nodes.

    Attributes:
        nodes: In rank order, with the lost ones.
        uptime_s: How long it is expected to run until its next stop or its end.
        slower_a_domain: What a split group costs here, as a share of a step.
    """

    layout: GroupPlaces
    nodes: tuple[str, ...]
    lost: tuple[str, ...]
    domains: Domains
    uptime_s: float
    slower_a_domain: float = SLOWER_A_DOMAIN


def choose(loss: LostNodes, candidates: Sequence[ReadyNode]) -> StandbyChoice:
    """The cheapest choice; of equals the one that starts sooner, then the first named.

    All ranks start together, so the least prepared standby is waited for: each degree of readiness
    is tried with all that are at least as ready.
    """
    wanted = min(len(loss.lost), len(candidates))
    degrees = sorted({c.start_s for c in candidates})
    ready = ([c for c in candidates if c.start_s <= limit] for limit in degrees)
    found = [_choice(loss, some) for some in ready if len(some) >= wanted]
    return min(found, key=lambda c: c.cost_s(loss.uptime_s), default=_choice(loss, ()))


def choose_in_turn(loss: LostNodes, tiers: Iterable[Sequence[ReadyNode]]) -> Mapping[str, str]:
    """Who takes whose place where all of one tier come in before anybody of the next."""
    standby_of: dict[str, str] = {}
    for tier in tiers:
        nodes = tuple(standby_of.get(node, node) for node in loss.nodes)
        left = tuple(node for node in loss.lost if node not in standby_of)
        if left:
            standby_of |= choose(replace(loss, nodes=nodes, lost=left), tier).standby_of
    return {node: standby_of[node] for node in loss.lost if node in standby_of}


def _choice(loss: LostNodes, candidates: Sequence[ReadyNode]) -> StandbyChoice:
    pairs = _Seats(loss, [c.node for c in candidates]).fill()
    start_s = max((c.start_s for c in candidates if c.node in pairs.values()), default=0.0)
    after = [loss.domains.of(pairs.get(node, node)) for node in loss.nodes]
    found = spreads(loss.layout, after)
    slower = price_of(found[0].widest, loss.slower_a_domain) if found else 0.0
    return StandbyChoice({n: pairs[n] for n in loss.lost if n in pairs}, start_s, slower, found)


class _Seats:
    """Places left by lost nodes, and standbys that are still free for them."""

    def __init__(self, loss: LostNodes, standbys: Sequence[str]) -> None:
        self._of = loss.domains.of
        self._lost = loss.lost
        self._free = list(standbys)
        self._pairs: dict[str, str] = {}
        names = [[loss.nodes[place] for place in row] for row in loss.layout.rows]
        hit = [row for row in names if not set(row).isdisjoint(loss.lost)]
        self._rows = sorted(hit, key=lambda row: -len(set(row) & set(loss.lost)))

    def fill(self) -> Mapping[str, str]:
        """A row that lost all goes first, as a block; then whoever can stand where it did."""
        for row in self._rows:
            if not self._staying(row):
                self._fill_block(row)
        for row in self._rows:
            for node in self._empty(row):
                self._take(node, {self._of(node)} & self._staying(row))
        for row in self._rows:
            for node in self._empty(row):
                self._take(node, self._staying(row))
        for row in self._rows:
            self._fill_block(row)
        return self._pairs

    def _staying(self, row: Sequence[str]) -> set[str]:
        """Domains the rest of a row is in."""
        nodes = [self._pairs.get(n, n) for n in row if n in self._pairs or n not in self._lost]
        return {self._of(node) for node in nodes}

    def _empty(self, row: Sequence[str]) -> list[str]:
        return [node for node in row if node in self._lost and node not in self._pairs]

    def _take(self, lost: str, domains: Collection[str]) -> None:
        found = next((node for node in self._free if self._of(node) in domains), None)
        if found is not None:
            self._free.remove(found)
            self._pairs[lost] = found

    def _fill_block(self, row: Sequence[str]) -> None:
        """From as few domains as possible: the tightest that holds the rest, else the fullest."""
        while self._free and (empty := self._empty(row)):
            was = {self._of(node) for node in empty}
            free = Counter(self._of(node) for node in self._free)
            best = min(free, key=lambda d: _fit(free[d], len(empty), d in was))
            for lost in empty[: free[best]]:
                self._take(lost, {best})


def _fit(free: int, wanted: int, was_here: bool) -> tuple[bool, bool, int]:
    """A key, less is better: holds all, is where a lost node stood, leaves least unused."""
    return (free < wanted, not was_here, free if free >= wanted else -free)
