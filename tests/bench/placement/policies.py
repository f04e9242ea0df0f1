"""What others do with the same free nodes, each as its documentation states it.

A policy gives, row by row, the domain of every place; `rows` of `length` nodes are wanted.
"""

import random
from collections.abc import Callable, Mapping

from brctl.playbook.placement.assign import Free, Rows, best_fit, cut, place

Policy = Callable[[Free, int, int, random.Random], Rows]


def random_nodes(free: Free, rows: int, length: int, rng: random.Random) -> Rows:
    """Any free nodes in the order drawn."""
    nodes = [domain for domain, count in free.items() for _ in range(count)]
    return cut(rng.sample(nodes, rows * length), length)


def by_name(free: Free, rows: int, length: int, rng: random.Random) -> Rows:
    """The first free nodes by name, a row consecutive (NVIDIA ft_launcher: first active nodes)."""
    nodes = [domain for domain in sorted(free) for _ in range(free[domain])]
    return cut(nodes[: rows * length], length)


def by_name_columns(free: Free, rows: int, length: int, rng: random.Random) -> Rows:
    """The same nodes with a column consecutive, as where data parallelism varies faster."""
    flat = [domain for row in by_name(free, rows, length, rng) for domain in row]
    return tuple(tuple(flat[row::rows]) for row in range(rows))


def packing(free: Free, rows: int, length: int, rng: random.Random) -> Rows:
    """The least free domains first, so that whole ones stay free."""
    given = least_free(free, rows * length)
    return cut([domain for domain, count in given.items() for _ in range(count)], length)


def slurm_tree(free: Free, rows: int, length: int, rng: random.Random) -> Rows:
    """Leaves under the lowest switch that holds the job, best-fit; ranks by name."""
    given = sorted(domain for row in best_fit(free, rows, length) for domain in row)
    return cut(given, length)


def best_fit_rows(free: Free, rows: int, length: int, rng: random.Random) -> Rows:
    """The same nodes with ranks in the order in which domains were taken."""
    return best_fit(free, rows, length)


def brctl(free: Free, rows: int, length: int, rng: random.Random) -> Rows:
    """Ours."""
    return place(free, rows, length)


def slurm_blocks(free: Free, rows: int, length: int, rng: random.Random) -> Rows:
    """topology/block with --segment=LENGTH: whole segments only, so none where too few fit."""
    whole = [domain for domain in sorted(free) for _ in range(free[domain] // length)]
    return tuple((domain,) * length for domain in whole[:rows]) if len(whole) >= rows else ()


PEERS: Mapping[str, Policy] = {
    "random nodes, drawn order": random_nodes,
    "first free by name (ft_launcher)": by_name,
    "first free by name, columns consecutive": by_name_columns,
    "packing (fullest minipods first)": packing,
    "Slurm topology/tree, ranks by name": slurm_tree,
    "best-fit, ranks by minipod (Kueue preferred)": best_fit_rows,
}


def kueue_best_fit(free: Free, wanted: int, slice_size: int = 1) -> Mapping[str, int]:
    """Kueue's default: the most whole slices first, the last domain the tightest that holds it."""
    left, taken = dict(free), dict.fromkeys(free, 0)
    slices = wanted // slice_size
    while slices:
        holding = [d for d in left if left[d] // slice_size >= slices]
        whole = {d: left[d] // slice_size for d in left}
        domain = (
            min(holding, key=lambda d: left[d])
            if holding
            else min(left, key=lambda d: (-whole[d], left[d]))
        )
        count = min(whole[domain], slices)
        taken[domain] += count * slice_size
        slices -= count
        del left[domain]
    return taken


def least_free(free: Free, wanted: int, slice_size: int = 1) -> Mapping[str, int]:
    """Kueue's LeastFreeCapacity: the domains with the least free nodes first."""
    taken = dict.fromkeys(free, 0)
    for domain in sorted(free, key=lambda d: (free[d], d)):
        count = min(free[domain] // slice_size * slice_size, wanted)
        taken[domain] = count
        wanted -= count
    return taken


def balanced(free: Free, wanted: int) -> Mapping[str, int]:
    """Kueue's Balanced: as few domains as suffice, evenly filled."""
    chosen = list(kueue_best_fit(free, wanted).items())
    used = [domain for domain, count in chosen if count]
    share, rest = divmod(wanted, len(used))
    return {
        **dict.fromkeys(free, 0),
        **{domain: share + (place < rest) for place, domain in enumerate(used)},
    }
