"""The other policies of the placement bench do what their documentation shows, ours no worse."""

import random

import pytest

from brctl.playbook.placement.assign import Free, place
from tests.bench.placement.clusters import SET_UPS, SetUp, clusters, no_better, weighted
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


@pytest.mark.parametrize("of", SET_UPS, ids=[of.name for of in SET_UPS])
def test_no_policy_goes_below_the_bound_and_ours_stands_on_it(of: SetUp) -> None:
    """So there is nothing for a solver to win on these clusters."""
    rng = random.Random(1)
    for free in clusters(of, 5, 1):
        bound = no_better(free, of)
        every = [weighted(policy(free, of.rows, of.length, rng)) for policy in PEERS.values()]
        assert min(every) >= bound - 1e-9
        assert weighted(place(free, of.rows, of.length)) <= bound * 1.01
