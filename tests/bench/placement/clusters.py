"""Clusters in pieces, as in Arnold's three set-ups (arXiv 2509.15940, Table 1), and their jobs."""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from brctl.model.jobs.job import Job, example_job
from brctl.playbook.placement.assign import Free, Rows

Draw = Callable[["SetUp", int, int], Iterator[Free]]

FREE_SHARE = 0.45
SLACK = 1.2
"""Free nodes: this share of the cluster, at least so many times what the job needs."""
MOST_FREE = 0.9
"""Of one minipod: a wholly free one is luck, and would hold whole rows for every policy."""
ALPHA = 0.3
"""Weight of the columns' spread against the rows': Arnold's for a 24B mixture of experts."""


@dataclass(frozen=True)
class SetUp:
    """A cluster and a job; rows are pipeline groups, columns data-parallel ones."""

    name: str
    minipods: int
    nodes: int
    rows: int
    length: int

    @property
    def needs(self) -> int:
        return self.rows * self.length


SET_UPS = (SetUp("i", 3, 18, 6, 2), SetUp("ii", 5, 438, 12, 8), SetUp("iii", 11, 1019, 46, 8))


def _sizes(of: SetUp) -> list[int]:
    """Nodes of each minipod."""
    return [of.nodes // of.minipods + (i < of.nodes % of.minipods) for i in range(of.minipods)]


def clusters(of: SetUp, count: int, seed: int, slack: float | None = None) -> Iterator[Free]:
    """Free nodes by minipod: each minipod's share is drawn, uniform; `slack` fixes the total."""
    rng = random.Random(seed)
    sizes = _sizes(of)
    total = round((1 + slack) * of.needs) if slack is not None else _usual(of)
    for _ in range(count):
        weights = [rng.random() + 1e-9 for _ in sizes]
        yield {f"m{i:02d}": n for i, n in enumerate(_shared(total, weights, sizes))}


def _usual(of: SetUp) -> int:
    return max(round(FREE_SHARE * of.nodes), round(SLACK * of.needs))


def _shared(total: int, weights: list[float], sizes: list[int]) -> list[int]:
    """Node by node in proportion to the weights, to none more than it has."""
    given = [0] * len(sizes)
    for _ in range(total):
        open_ones = [i for i, size in enumerate(sizes) if given[i] < MOST_FREE * size - 0.5]
        given[max(open_ones, key=lambda i: weights[i] / (given[i] + 0.5))] += 1
    return given


def _drawn_apart(share: Callable[[random.Random], float]) -> Draw:
    """Each minipod's free share by itself; drawn again where the job does not fit."""

    def draw(of: SetUp, count: int, seed: int) -> Iterator[Free]:
        rng = random.Random(seed)
        while count:
            free = {f"m{i:02d}": round(share(rng) * size) for i, size in enumerate(_sizes(of))}
            if sum(free.values()) >= of.needs:
                count -= 1
                yield free

    return draw


DRAWS: Mapping[str, Draw] = {
    "shares of 45 % in all, none above 90 %": clusters,
    "each 0 to 90 %": _drawn_apart(lambda rng: rng.uniform(0.0, 0.9)),
    "each 0 to 100 %": _drawn_apart(lambda rng: rng.random()),
    "each 20 to 70 %": _drawn_apart(lambda rng: rng.uniform(0.2, 0.7)),
}
"""Ways to draw free nodes, 45 % of them or near it."""


def row_and_column_spread(rows: Rows) -> tuple[int, int]:
    """The widest row and the widest column."""
    return max(len(set(row)) for row in rows), max(
        len({row[i] for row in rows}) for i in range(len(rows[0]))
    )


def weighted(rows: Rows) -> float:
    """Arnold's weighted spread."""
    row, column = row_and_column_spread(rows)
    return ALPHA * column + (1 - ALPHA) * row


def no_better(free: Free, of: SetUp) -> float:
    """What no placement of these nodes can go below, whichever solver looks for it.

    Counted is what Arnold's program minimises, domains used for the columns' spread: rows are whole
    only in domains that hold whole rows, and one that is not whole is over two domains at least.
    """
    whole = _fewest([n // of.length for n in free.values()], of.rows)
    cut = _fewest(list(free.values()), of.needs)
    split = ALPHA * cut + (1 - ALPHA) * 2
    return min(ALPHA * whole + 1 - ALPHA, split) if whole else split


def _fewest(counts: list[int], wanted: int) -> int:
    """Domains that hold so many together; 0 when all do not."""
    for used, _ in enumerate(counts, start=1):
        if sum(sorted(counts, reverse=True)[:used]) >= wanted:
            return used
    return 0


def job_of(of: SetUp, rows: Rows) -> tuple[Job, dict[str, str]]:
    """A job on named nodes with these domains, tensor parallelism inside the node."""
    places = [domain for row in rows for domain in row]
    where = {f"n{i:04d}": domain for i, domain in enumerate(places)}
    axes = (("tp", 8), ("pp", of.length), ("dp", of.rows))
    job = replace(example_job(), nodes=tuple(where), ranks_per_node=8, axes=axes)
    return job, where
