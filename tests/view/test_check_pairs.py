"""The page of `brctl check pairs`: what was not tested is not well."""

import pytest

from brctl.evidence.pairs import PairResult
from brctl.model.exit_codes import ExitCode
from brctl.view.fleet.check_pairs import pairs_page
from tests.evidence.test_pairs import ring, slowed


@pytest.mark.parametrize(
    ("results", "left_out", "failing", "code"),
    [
        (ring(4), (), (), ExitCode.OK),
        (ring(4, n1_n2=1), (), (), ExitCode.CRITICAL),
        (ring(4, n1_n2=None), (), (), ExitCode.UNKNOWN),
        (ring(4), ("n5",), (), ExitCode.UNKNOWN),
        (ring(4), ("n5",), ("n5",), ExitCode.CRITICAL),
        ([], (), (), ExitCode.UNKNOWN),
        (slowed(ring(4), {("n1", "all_gather"): 1.0, ("n1", "all_to_all"): 1.0}), (), (),
         ExitCode.WARNING),
    ],
)  # fmt: skip
def test_what_was_not_tested_is_not_well(
    results: list[PairResult], left_out: tuple[str, ...], failing: tuple[str, ...], code: ExitCode
) -> None:
    """Silence of a node or a pair is never exit 0."""
    page = pairs_page(results, left_out, failing, ())
    assert page.exit_code is code
    assert set(failing) <= set(page.names)


def test_a_bad_pair_that_names_nobody_says_so() -> None:
    """People read why no node is named, and which pair it was."""
    text = pairs_page(ring(2, n1_n2=3), (), (), ()).text
    assert "WRONG  n1-n2" in text
    assert "3 of 4 failed" in text
    assert "does not say which" in text
