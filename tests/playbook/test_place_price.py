"""The price of a further domain is what a job's own steps took at two widths, or is assumed."""

import pytest

from brctl.playbook.placement.price import ASSUMED, PaceSeen, place_price

WHOLE = PaceSeen("llm", "r1", 1, 2.0, 60)
SPLIT = PaceSeen("llm", "r1", 3, 2.4, 60)


def test_a_job_seen_whole_and_split_gives_the_price_of_each_further_domain() -> None:
    found = place_price([WHOLE, SPLIT])
    assert found.slower_a_domain == pytest.approx(0.1)
    assert (found.assumed, found.source) == (False, "measured here, 1 comparisons")


@pytest.mark.parametrize(
    "other",
    [
        PaceSeen("llm", "r2", 3, 2.4, 60),
        PaceSeen("other", "r1", 3, 2.4, 60),
        PaceSeen("llm", "r1", 3, 2.4, 49),
        PaceSeen("llm", "r1", 1, 2.4, 60),
    ],
)
def test_another_code_another_job_too_few_steps_and_one_width_are_no_measurement(
    other: PaceSeen,
) -> None:
    assert place_price([WHOLE, other]) == ASSUMED


def test_several_looks_count_together_and_an_odd_one_decides_nothing() -> None:
    looks = [PaceSeen("llm", "r1", 2, step_s, 30) for step_s in (2.1, 2.1, 9.0)]
    assert place_price([WHOLE, *looks]).slower_a_domain == pytest.approx(0.05)


def test_a_split_job_that_is_faster_costs_nothing_and_no_price_is_above_a_whole_step() -> None:
    assert place_price([WHOLE, PaceSeen("llm", "r1", 2, 1.0, 60)]).slower_a_domain == 0.0
    assert place_price([WHOLE, PaceSeen("llm", "r1", 2, 90.0, 60)]).slower_a_domain == 1.0
