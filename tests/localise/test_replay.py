"""Dual-phase replay as the paper defines it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.localise.replay import dual_phase, replica_span, sharpest_phases
from brctl.model.errors import UsageError


def test_the_papers_example_names_machine_13() -> None:
    """24 machines, m=4, n=6: machine 13 is in row 3 and column 1, and nobody else is in both."""
    phases = dual_phase(24, span=4, k=1)
    assert (phases.m, phases.n) == (4, 6)
    assert phases.horizontal()[3] == (12, 13, 14, 15)
    assert phases.vertical()[1] == (1, 7, 13, 19)
    assert phases.suspects({3}, {1}) == (13,)


@pytest.mark.parametrize(
    ("replicas", "span", "expected"),
    [(32, 8, 2), (64, 8, 2), (64, 16, 2), (128, 16, 2), (150, 8, 3)],
)
def test_the_largest_k_keeps_the_answer_unique(replicas: int, span: int, expected: int) -> None:
    """Without --k the largest k with m <= n is taken, as listed for the paper's set-ups."""
    phases = dual_phase(replicas * span, span)
    assert phases.k == expected
    assert phases.m <= phases.n


@given(st.integers(1, 6), st.integers(2, 24), st.data())
def test_one_bad_machine_is_unique(span: int, replicas: int, data: st.DataObject) -> None:
    """For m <= n the failing row and column of one machine meet in that machine only."""
    count = span * replicas
    try:
        phases = dual_phase(count, span)
    except UsageError:
        return
    bad = data.draw(st.integers(0, count - 1))
    rows = {a for a, group in enumerate(phases.horizontal()) if bad in group}
    columns = {b for b, group in enumerate(phases.vertical()) if bad in group}
    assert phases.suspects(rows, columns) == (bad,)
    assert sorted(x for g in phases.horizontal() for x in g) == list(range(count))
    assert sorted(x for g in phases.vertical() for x in g) == list(range(count))


def test_a_replica_fills_whole_nodes() -> None:
    """tp*pp ranks on nodes of eight: the span in nodes, or a refusal."""
    assert replica_span(8, 8, 8) == 8
    assert replica_span(2, 2, 8) == 1
    with pytest.raises(UsageError, match="do not fill"):
        replica_span(3, 4, 8)


@given(st.integers(1, 4), st.integers(2, 16))
def test_no_machine_has_more_company_than_the_plan_says(span: int, replicas: int) -> None:
    """Where no cut names one machine the sharpest leaves at most its cardinality, and says so."""
    count = span * replicas
    try:
        phases = sharpest_phases(count, span)
    except UsageError:
        return
    sizes = [
        len(phases.suspects({row}, {column}))
        for row in range(phases.n)
        for column in range(phases.n)
    ]
    assert max(sizes) == phases.cardinality


def test_eight_machines_of_two_pipelines_leave_two() -> None:
    """Four machines a replica: two groups a phase, and a failing pair shares two machines."""
    phases = sharpest_phases(8, 4)
    assert (phases.m, phases.n, phases.cardinality) == (4, 2, 2)
    with pytest.raises(UsageError, match="nothing to compare"):
        sharpest_phases(4, 4)
