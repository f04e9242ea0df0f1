"""The pool covers the losses of a day and the largest group that is ever evicted."""

from dataclasses import replace
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.model.jobs.job import example_job
from brctl.playbook.spares import largest_group, losses_at_once, losses_within, pool_size


@pytest.mark.parametrize("rate", [0.001165, 0.0012, 0.001249])
def test_the_papers_table_5_comes_out(rate: float) -> None:
    """2, 2, 3 and 4 standbys for 128, 256, 512 and 1024 machines (arXiv 2509.16293)."""
    assert [losses_at_once(n, rate) for n in (128, 256, 512, 1024)] == [2, 2, 3, 4]


@given(st.integers(1, 300), st.floats(0.0001, 0.2), st.floats(0.5, 0.999))
def test_it_is_the_binomial_quantile(machines: int, rate: float, risk: float) -> None:
    """Independent check against the sum of binomial terms."""
    k = losses_at_once(machines, rate, risk)
    terms = [comb(machines, i) * rate**i * (1 - rate) ** (machines - i) for i in range(k + 1)]
    assert sum(terms) >= risk - 1e-9
    assert sum(terms[:-1]) < risk + 1e-9


@given(st.integers(1, 2000), st.floats(0.0001, 0.01))
def test_more_machines_never_need_fewer_standbys(machines: int, rate: float) -> None:
    """The pool grows with the fleet."""
    assert losses_at_once(machines + 50, rate) >= losses_at_once(machines, rate)


def test_a_fleet_that_never_fails_needs_none_and_nonsense_is_refused() -> None:
    """Zero is an answer, a rate above one is not."""
    assert losses_at_once(100, 0.0) == 0
    with pytest.raises(ValueError, match="between 0 and 1"):
        losses_at_once(100, 1.5)


def test_the_largest_pipeline_group_can_rule() -> None:
    """Over-evicting a group of 8 needs 8, whatever the binomial says."""
    job = replace(
        example_job(),
        nodes=tuple(f"n{i}" for i in range(1, 129)),
        ranks_per_node=8,
        axes=(("tp", 8), ("pp", 8), ("dp", 16)),
    )
    assert largest_group(job) == (8, "pp")
    size = pool_size(job, 0.0012)
    assert (size.losses, size.needed, size.rules) == (2, 8, "the largest pp group")


def test_a_job_whose_groups_stay_inside_a_node_is_ruled_by_losses() -> None:
    """Tensor parallel within a node evicts one node."""
    job = replace(example_job(), ranks_per_node=8, axes=(("tp", 8), ("dp", 8)))
    assert largest_group(job) == (1, "")
    assert pool_size(job, 0.05).rules == "P99 of losses at once"


def test_a_pool_that_is_refilled_late_must_last_until_then() -> None:
    """Not the losses of one day but of all days until a lost one is replaced."""
    nodes = tuple(f"n{i}" for i in range(1_200))
    job = replace(example_job(), nodes=nodes, ranks_per_node=8, axes=(("tp", 8), ("dp", 1_200)))
    size = pool_size(job, 0.0012, refill_days=3.0)
    assert (size.needed, size.rules) == (10, "P99 of losses until a refill")
    assert pool_size(job, 0.0012, refill_days=1.0).needed == pool_size(job, 0.0012).needed == 5


def test_a_great_many_losses_are_counted_too() -> None:
    """More than an exponential can hold."""
    found = losses_within(100_000, 0.0012, 30.0)
    assert 3_600 + 2.3 * 60 < found < 3_600 + 2.4 * 60
    assert 0 <= losses_within(4_166, 0.0012, 100.0) - losses_within(4_167, 0.0012, 99.9) <= 2


def test_a_job_that_hardly_ever_loses_a_node_still_needs_one() -> None:
    """The binomial says none and no group is wider than a node; the next loss is one."""
    job = replace(example_job(), ranks_per_node=8, axes=(("tp", 8), ("dp", 8)))
    size = pool_size(job, 0.0001)
    assert (size.losses, size.needed, size.rules) == (0, 1, "the smallest loss there is, one node")
