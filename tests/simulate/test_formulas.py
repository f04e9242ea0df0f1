"""Expected shares and pools, beside the figures published for them."""

import pytest

from brctl.evidence.job.expected_ettr import closed_form
from brctl.playbook.spares import losses_within
from brctl.simulate.formulas import (
    best_interval_s,
    exact,
    stops_per_s,
)

PUBLISHED = (
    (2_000, 6.5e-3, 300, 3_600, 0, 0.684, 0.721),
    (2_000, 6.5e-3, 300, 300, 0, 0.932, 0.935),
    (1_000, 6.5e-3, 360, 1_800, 0, 0.905, 0.909),
    (1_500, 6.5e-3, 300, 420, 10, 0.921, 0.922),
    (1_500, 1e-3, 300, 5_880, 300, 0.898, 0.897),
)


@pytest.mark.parametrize(
    ("nodes", "rate", "start", "interval", "write", "closed", "renewal"), PUBLISHED
)
def test_both_formulas_give_the_published_shares(
    nodes: int,
    rate: float,
    start: float,
    interval: float,
    write: float,
    closed: float,
    renewal: float,
) -> None:
    """Meta, arXiv 2410.21680: 2,000 nodes with saves of 60 minutes keep 0.7 of their time."""
    stops = stops_per_s(nodes, rate)
    assert closed_form(stops, start, interval, write) == pytest.approx(closed, abs=6e-4)
    assert exact(stops, start, interval, write) == pytest.approx(renewal, abs=6e-4)


@pytest.mark.parametrize(("rate", "write", "minutes"), [(6.5e-3, 10, 7.0), (1e-3, 300, 98)])
def test_the_best_interval_is_near_where_the_exact_share_is_largest(
    rate: float, write: float, minutes: float
) -> None:
    stops = stops_per_s(1_500, rate)
    best = best_interval_s(stops, write)
    tried = max(range(60, 12_000, 10), key=lambda tau: exact(stops, 300, tau, write))
    assert best / 60 == pytest.approx(minutes, rel=0.01)
    assert tried == pytest.approx(best, rel=0.1)


def test_a_slower_refill_needs_more_standbys() -> None:
    assert [losses_within(512, 0.0012, days) for days in (0.25, 1, 2, 3, 7)] == [2, 3, 4, 6, 10]
