"""The other policies of the placement bench do what their documentation shows, ours no worse."""

import random

import pytest

from brctl.playbook.placement.assign import Free, cost, place
from tests.bench.placement.clusters import (
    SET_UPS,
    SetUp,
    clusters,
    no_better,
    row_and_column_spread,
    weighted,
)
from tests.bench.placement.policies import PEERS, balanced, kueue_best_fit, least_free


def free_of(*counts: int) -> Free:
    """Domains in the order of a documentation's example."""
    return {f"d{i}": count for i, count in enumerate(counts)}


def test_kueue_takes_the_domains_of_its_documentation() -> None:
    """Topology-aware scheduling: BestFit, LeastFreeCapacity, slices and Balanced."""
    assert list(kueue_best_fit(free_of(3, 3, 2, 1), 7).values()) == [3, 3, 0, 1]
    assert sorted(least_free(free_of(3, 3, 2, 1), 7).values()) == [1, 1, 2, 3]
    assert list(kueue_best_fit(free_of(6, 5, 4, 3, 2), 12, 2).values()) == [6, 0, 4, 0, 2]
    assert list(least_free(free_of(6, 5, 4, 3, 2), 10, 2).values()) == [0, 2, 4, 2, 2]
    assert list(kueue_best_fit(free_of(10, 10), 12).values()) == [10, 2]
    assert list(balanced(free_of(10, 10), 12).values()) == [6, 6]


def test_who_takes_nodes_as_they_come_splits_rows_that_ours_keeps() -> None:
    """Three domains of ten, three rows of eight; two rows of eight in seven, nine and eight."""
    rng = random.Random(1)
    for name in ("first free by name (ft_launcher)", "packing (fullest minipods first)"):
        assert cost(PEERS[name](free_of(10, 10, 10), 3, 8, rng))[0] == 2
    assert row_and_column_spread(place(free_of(10, 10, 10), 3, 8)) == (1, 3)
    assert row_and_column_spread(place(free_of(7, 9, 8), 2, 8)) == (1, 2)
    assert row_and_column_spread(place(free_of(12, 6, 6), 3, 4)) == (1, 1)


@pytest.mark.parametrize("of", SET_UPS, ids=[of.name for of in SET_UPS])
def test_no_policy_goes_below_the_bound_and_ours_stands_on_it(of: SetUp) -> None:
    """So there is nothing for a solver to win on these clusters."""
    rng = random.Random(1)
    for free in clusters(of, 5, 1):
        bound = no_better(free, of)
        every = [weighted(policy(free, of.rows, of.length, rng)) for policy in PEERS.values()]
        assert min(every) >= bound - 1e-9
        assert weighted(place(free, of.rows, of.length)) <= bound * 1.01
