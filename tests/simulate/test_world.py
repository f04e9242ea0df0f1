"""A job in simulated time: where its time goes, and who does better on the same faults."""

from dataclasses import replace
from math import sqrt
from statistics import fmean, stdev

import pytest

from brctl.model.simulation import Book
from brctl.simulate import world as world_module
from brctl.simulate.formulas import exact, stops_per_s
from brctl.simulate.policies import POLICIES
from tests.simulate.fleets import MEANS, of_the_job, saving, simulated

SEEDS = range(4)
BETTER = ("requeue", "reschedule", "standby", "oracle")


@pytest.mark.parametrize("policy", POLICIES)
def test_the_books_sum_to_the_wall_time_and_none_is_negative(policy: str) -> None:
    for seed in SEEDS:
        run = simulated(
            replace(MEANS, restart_fails=0.3, burst_nodes=32, burst_share=0.1), policy, seed
        )
        assert sum(run.books_us.values()) == run.wall_us
        assert min(run.books_us.values()) >= 0


def test_without_faults_everything_but_the_saves_is_productive() -> None:
    calm = replace(MEANS, per_1000_node_days=0.0, days=10.0)
    assert simulated(calm, "standby", 1).ettr == 1
    assert simulated(calm, saving(600, 60), 1).ettr == pytest.approx(1 / (1 + 60 / 600), abs=1e-3)


@pytest.mark.parametrize(
    ("nodes", "rate", "start", "interval", "write"),
    [(2_000, 6.5e-3, 300, 3_600, 0), (2_000, 6.5e-3, 300, 300, 0), (1_500, 6.5e-3, 300, 420, 10)],
)
def test_events_give_what_the_renewal_formula_says(
    nodes: int, rate: float, start: float, interval: float, write: float
) -> None:
    """Within three standard errors over 600 days."""
    fleet = of_the_job(nodes, rate, start, 60.0)
    # The job's own stops come with the hours that it trains, as in the formula.
    found = [simulated(fleet, saving(interval, write), seed).ettr for seed in range(10)]
    wanted = exact(stops_per_s(nodes, rate), start, interval, write)
    assert abs(fmean(found) - wanted) < 3 * stdev(found) / sqrt(len(found)) + 5e-4


def test_policies_keep_their_order_on_every_seed() -> None:
    """Oracle, warm standby, reschedule, requeue: each meets the same faults."""
    for seed in SEEDS:
        found = [simulated(MEANS, policy, seed).ettr for policy in BETTER]
        assert found == sorted(found)


def test_more_standbys_a_faster_start_and_fewer_faults_never_cost_time() -> None:
    quick = replace(MEANS, times=replace(MEANS.times, warm_s=30.0))
    for seed in SEEDS:
        by_pool = [simulated(replace(MEANS, standbys=n), "standby", seed).ettr for n in range(7)]
        assert by_pool == sorted(by_pool)
        assert simulated(quick, "standby", seed).ettr >= simulated(MEANS, "standby", seed).ettr
    fleets = [replace(MEANS, per_1000_node_days=rate) for rate in (4.0, 2.0, 1.0)]
    means = [fmean(simulated(fleet, "standby", seed).ettr for seed in SEEDS) for fleet in fleets]
    assert means == sorted(means)


def test_peers_stand_where_their_own_figures_put_them() -> None:
    """One machine in 20 s at best, then checks, then stress tests; hourly checkpoints last."""
    ettr = {name: simulated(MEANS, name, 5).ettr
            for name in ("trainmover", "standby", "stress-tests", "megascale", "meta")}  # fmt: skip
    assert list(ettr) == sorted(ettr, key=lambda name: -ettr[name])


def test_a_pool_that_ran_dry_says_when_first() -> None:
    dry = simulated(replace(MEANS, standbys=0), "standby", 5)
    assert 0 < dry.first_short_us < 10 * 86_400_000_000
    assert simulated(replace(MEANS, standbys=1_000), "standby", 5).first_short_us == 0


def test_a_group_larger_than_the_pool_waits_for_other_nodes() -> None:
    """32 nodes at once, five standbys: the rest is rescheduled and booked apart."""
    bursts = replace(
        MEANS, burst_nodes=32, burst_share=1.0, shares={"kernel-panic": 1.0}, days=10.0
    )
    run = simulated(bursts, "standby", 3)
    assert run.stops
    assert run.shortfalls == run.stops
    assert run.hours(Book.IDLE_NO_STANDBY) == pytest.approx(
        run.stops * (379 - 70.7) / 3_600, rel=0.01
    )


def test_a_node_that_was_taken_out_takes_its_faults_with_it() -> None:
    """Ten bad nodes of a hundred: once they are gone, so is what they do beyond the others."""
    bad = replace(MEANS, nodes=100, bad_share=0.1, bad_times=200.0, per_1000_node_days=40.0,
                  shares={"gpu-memory": 1.0}, days=60.0, standbys=None)  # fmt: skip
    kept = replace(bad, bad_share=0.0)
    assert simulated(bad, "standby", 5).stops < 0.4 * simulated(kept, "standby", 5).stops


def test_a_policy_without_end_is_stopped_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world_module, "STOPS_LIMIT", 50)
    run = simulated(MEANS, "standby", 1)
    assert run.stops == 50
    assert run.unfinished.startswith("standby: 50 stops by ")
    assert sum(run.books_us.values()) == run.wall_us
