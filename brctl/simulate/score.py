"""Runs as scores: means with intervals, and what a policy gains on the same faults."""

from collections.abc import Mapping, Sequence
from math import fsum

from brctl.model.simulation import SIMULATED_BOOKS, Book, PolicyScore, SimulatedRun, interval
from brctl.simulate.trace import DAY_US

COUNTS = ("stops", "actions", "healthy_evicted", "culprits_evicted", "came_back", "shortfalls",
          "pages", "approvals", "refused")  # fmt: skip


def score(runs: Sequence[SimulatedRun], titles: Mapping[str, str]) -> tuple[PolicyScore, ...]:
    """One score a policy, in the order of `titles`; differences are to the first of them."""
    by_policy = {name: {run.seed: run for run in runs if run.policy == name} for name in titles}
    first = next(iter(by_policy.values()), {})
    return tuple(
        _score(name, titles[name], mine, None if mine is first else first)
        for name, mine in by_policy.items()
        if mine
    )


def _score(
    name: str,
    title: str,
    runs: Mapping[int, SimulatedRun],
    first: Mapping[int, SimulatedRun] | None,
) -> PolicyScore:
    count = len(runs)
    shares = [run.ettr for run in runs.values()]
    stops = sum(run.stops for run in runs.values())
    pairs = (
        [run.ettr - first[seed].ettr for seed, run in runs.items() if seed in first]
        if first
        else []
    )
    dry = [run.first_short_us / DAY_US for run in runs.values() if run.first_short_us]
    return PolicyScore(
        policy=name,
        title=title,
        runs=count,
        ettr=interval(shares),
        worst_run=min(shares),
        gained=interval(pairs) if pairs else None,
        lost_h={
            book: sum(run.hours(book) for run in runs.values()) / count
            for book in SIMULATED_BOOKS
            if book is not Book.PRODUCTIVE
        },
        per_run={key: sum(getattr(run, key) for run in runs.values()) / count for key in COUNTS},
        ran_dry_share=len(dry) / count,
        first_short_day=fsum(dry) / len(dry) if dry else None,
        short_share=sum(run.shortfalls for run in runs.values()) / stops if stops else 0.0,
    )
