"""Over how many domains the parallel groups of a job are spread.

All wait for the slowest, so the widest group decides; how many groups are split, and by how much
in all, tells one split group from forty.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from brctl.model.jobs.job import Job

FIRST_WHOLE = ("tp", "pp", "cp", "ep", "dp")
"""Which axis is kept whole first: point-to-point traffic loses 70 % between minipods, collectives
17 % (Arnold, arXiv 2509.15940); an axis whose groups fit on one node is whole anyway."""

SLOWER_A_DOMAIN = 0.02
"""Assumed: a pipeline over one domain more, Arnold's 96 GPUs; nobody measured it here."""
SLOWEST = 0.106
"""The most Arnold measured end to end, 9,600 GPUs."""


@dataclass(frozen=True, slots=True)
class AxisGroups:
    """The groups of one axis, each as the places in `Job.nodes` it spans."""

    axis: str
    groups: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class GroupPlaces:
    """What of a job's groups spans nodes.

    Attributes:
        axes: Those whose groups span nodes, the one to be kept whole first in front.
        rows: The places that belong together: groups of the first axis, joined where they share
            a place. All have one length.
    """

    axes: tuple[AxisGroups, ...]
    rows: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """How one axis stands.

    Attributes:
        groups: How many there are.
        widest: Domains under the group that is spread most; 1 is whole.
        split: Groups over more than one domain.
        total: Domains under each group, summed.
    """

    axis: str
    groups: int
    widest: int
    split: int
    total: int


def layout_of(job: Job) -> GroupPlaces:
    """The groups of a job as places in its nodes."""
    sizes = dict(job.axes)
    order = [a for a in FIRST_WHOLE if a in sizes] + [a for a in sizes if a not in FIRST_WHOLE]
    found = (AxisGroups(axis, _spanned(job, axis)) for axis in order if sizes[axis] > 1)
    axes = tuple(a for a in found if any(len(group) > 1 for group in a.groups))
    return GroupPlaces(axes, rows_of(len(job.nodes), axes[0].groups if axes else ()))


def rows_of(size: int, groups: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Places in rows; all in one where joined groups are not equally long.

    Examples:
        >>> rows_of(6, [(0, 2), (2, 4), (1, 3, 5)])
        ((0, 2, 4), (1, 3, 5))
    """
    row_of = {place: {place} for place in range(size)}
    for group in groups:
        joined = set[int]().union(*(row_of[place] for place in group))
        row_of |= dict.fromkeys(joined, joined)
    rows = tuple(dict.fromkeys(tuple(sorted(row)) for row in row_of.values()))
    return rows if len({len(row) for row in rows}) <= 1 else (tuple(range(size)),)


def _spanned(job: Job, axis: str) -> tuple[tuple[int, ...], ...]:
    """The places of each group, those of ranks on the same nodes once."""
    spans = (
        tuple(sorted({rank // job.ranks_per_node for rank in ranks})) for ranks in job.groups(axis)
    )
    return tuple(dict.fromkeys(spans))


def spreads(layout: GroupPlaces, domains: Sequence[str]) -> tuple[Spread, ...]:
    """How each axis stands when the places have these domains."""
    return tuple(_spread(axis, domains) for axis in layout.axes)


def _spread(axis: AxisGroups, domains: Sequence[str]) -> Spread:
    widths = [len({domains[place] for place in group}) for group in axis.groups]
    return Spread(axis.axis, len(widths), max(widths), sum(w > 1 for w in widths), sum(widths))


def badness(found: Sequence[Spread]) -> tuple[int, ...]:
    """Spreads as a key: less is better, the first axis first."""
    return tuple(number for s in found for number in (s.widest, s.split, s.total))


def slower_by(found: Sequence[Spread], slower_a_domain: float = SLOWER_A_DOMAIN) -> float:
    """The share by which a step is longer than with the first axis whole."""
    return price_of(found[0].widest, slower_a_domain) if found else 0.0


def price_of(domains: int, slower_a_domain: float = SLOWER_A_DOMAIN) -> float:
    """The same for one group over some domains.

    Examples:
        >>> price_of(1), price_of(2), price_of(40)
        (0.0, 0.02, 0.106)
        >>> price_of(2, 0.4)  # measured: more than Arnold did
        0.4
    """
    return min(max(SLOWEST, slower_a_domain), slower_a_domain * (domains - 1))
