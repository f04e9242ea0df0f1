"""How a job stands, how it would with its ranks in another order, and with other nodes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from brctl.playbook.placement.assign import Free, Rows, arrangements, lacking
from brctl.playbook.placement.domains import Domains
from brctl.playbook.placement.spread import (
    SLOWER_A_DOMAIN,
    GroupPlaces,
    Spread,
    badness,
    slower_by,
    spreads,
)


@dataclass(frozen=True, slots=True)
class RankOrder:
    """Nodes in rank order, and how that stands.

    Attributes:
        moved_in: Nodes the job does not have now.
        slower_a_domain: What a further domain costs, as a share of a step.
    """

    nodes: tuple[str, ...]
    spreads: tuple[Spread, ...]
    moved_in: tuple[str, ...] = ()
    slower_a_domain: float = SLOWER_A_DOMAIN

    @property
    def slower_by(self) -> float:
        """The share of a step that it costs against whole groups."""
        return slower_by(self.spreads, self.slower_a_domain)


@dataclass(frozen=True, slots=True)
class Advice:
    """What placement would be worth to a job.

    Attributes:
        rank_order: The same nodes, ranks in the best order found; `now` where none is better.
        best: With free nodes too, as few of them as keep the most rows whole.
        lacking: Further free nodes, by domain, with which every row would be whole.
    """

    now: RankOrder
    rank_order: RankOrder
    best: RankOrder
    lacking: Mapping[str, int]

    def priced(self, slower_a_domain: float) -> "Advice":
        """The same at another price."""
        now, order, best = (
            replace(each, slower_a_domain=slower_a_domain)
            for each in (self.now, self.rank_order, self.best)
        )
        return replace(self, now=now, rank_order=order, best=best)


def advise(
    layout: GroupPlaces, nodes: Sequence[str], free: Sequence[str], domains: Domains
) -> Advice:
    """What another rank order and other nodes would change.

    Args:
        layout: The job's groups.
        nodes: Its nodes in rank order.
        free: Nodes nobody uses; those nobody knows the place of are not considered.
        domains: Of both.
    """
    usable = [node for node in free if domains.known(node) and node not in nodes]
    order = best_order(layout, nodes, domains)
    best = _fewest_moves(layout, order, usable, domains)
    split = best.spreads and best.spreads[0].split
    rows, length = len(layout.rows), len(layout.rows[0])
    short = lacking(_known([*nodes, *usable], domains), rows, length) if split else {}
    return Advice(_placement(layout, nodes, (), domains), order, best, short)


def best_order(layout: GroupPlaces, nodes: Sequence[str], domains: Domains) -> RankOrder:
    """The nodes in the order that splits least; as they are where none is better."""
    now = _placement(layout, nodes, (), domains)
    return min([now, *_seatings(layout, now, [], domains)], key=lambda p: badness(p.spreads))


def _fewest_moves(
    layout: GroupPlaces, order: RankOrder, usable: Sequence[str], domains: Domains
) -> RankOrder:
    """The most rows whole, then the fewest nodes moved: a move may meet a bad machine."""
    limit = _known(usable, domains)
    have = {**dict.fromkeys(limit, 0), **_known(order.nodes, domains)}
    wanted = lacking(have, len(layout.rows), len(layout.rows[0]), limit)
    few = [node for d in wanted for node in _of_domain(usable, d, domains)[: wanted[d]]]
    found = [p for some in (few, usable) for p in _seatings(layout, order, some, domains)]
    return min([order, *found], key=_rows_split_then_moves)


def _rows_split_then_moves(placement: RankOrder) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    split = tuple(n for s in placement.spreads[:1] for n in (s.widest, s.split))
    return split, len(placement.moved_in), badness(placement.spreads)


def _seatings(
    layout: GroupPlaces, now: RankOrder, others: Sequence[str], domains: Domains
) -> list[RankOrder]:
    """Every way to fill the job's rows from its own nodes and others."""
    nodes = [*now.nodes, *others]
    rows = arrangements(_counts(nodes, domains), len(layout.rows), len(layout.rows[0]))
    return [_seated(layout, nodes, each, frozenset(others), domains) for each in rows]


def _seated(
    layout: GroupPlaces, nodes: Sequence[str], rows: Rows, others: frozenset[str], domains: Domains
) -> RankOrder:
    """Nodes in the places of rows, the job's own before others."""
    waiting: dict[str, list[str]] = {}
    for node in reversed(nodes):
        waiting.setdefault(domains.of(node), []).append(node)
    seats = {
        place: waiting[domain].pop()
        for places, wanted in zip(layout.rows, rows, strict=True)
        for place, domain in zip(places, wanted, strict=True)
    }
    return _placement(layout, [seats[place] for place in sorted(seats)], others, domains)


def _placement(
    layout: GroupPlaces,
    nodes: Sequence[str],
    others: Sequence[str] | frozenset[str],
    domains: Domains,
) -> RankOrder:
    found = spreads(layout, [domains.of(node) for node in nodes])
    return RankOrder(tuple(nodes), found, tuple(node for node in nodes if node in others))


def _of_domain(nodes: Sequence[str], domain: str, domains: Domains) -> list[str]:
    return [node for node in nodes if domains.of(node) == domain]


def _counts(nodes: Sequence[str], domains: Domains) -> Free:
    """Nodes in each domain, domains by name: who is listed first decides nothing."""
    return dict(sorted(Counter(domains.of(node) for node in nodes).items()))


def _known(nodes: Sequence[str], domains: Domains) -> Free:
    """The same without nodes whose domain nobody knows: nothing can stand beside them."""
    return _counts([node for node in nodes if domains.known(node)], domains)
