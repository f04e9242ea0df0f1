"""How often a test is repeated follows from what may be missed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.localise.repetitions import least_chance, repetitions_for


@pytest.mark.parametrize(
    ("chance", "miss", "expected"),
    [(1.0, 0.01, 1), (0.1, 0.01, 44), (0.1, 0.05, 29), (0.01, 0.01, 459), (0.001, 0.01, 4603)],
)
def test_repetitions_follow_from_the_chance_and_the_wanted_miss(
    chance: float, miss: float, expected: int
) -> None:
    """0.9 to the power of 44 is the first below one percent."""
    assert repetitions_for(chance, miss) == expected


@given(st.floats(0.001, 0.99), st.floats(0.0001, 0.5))
def test_what_was_planned_is_what_passing_excludes(chance: float, miss: float) -> None:
    """So many clean repetitions exclude the planned chance, and one fewer would not."""
    repetitions = repetitions_for(chance, miss)
    assert least_chance(repetitions, miss) <= chance * (1 + 1e-9)
    assert repetitions == 1 or least_chance(repetitions - 1, miss) > chance * (1 - 1e-9)


@pytest.mark.parametrize(("chance", "miss"), [(0.0, 0.1), (1.1, 0.1), (0.5, 0.0), (0.5, 1.0)])
def test_what_no_number_of_repetitions_reaches_is_refused(chance: float, miss: float) -> None:
    """A fault that never shows, or that may never be missed."""
    with pytest.raises(ValueError, match="no number of repetitions"):
        repetitions_for(chance, miss)
