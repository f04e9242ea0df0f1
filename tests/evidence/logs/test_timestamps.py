"""Moments in the shapes that logs use."""

import pytest

from brctl.evidence.logs.timestamps import seconds_of_year

FIFTH_OF_JULY = (181 + 4) * 86400.0 + 3 * 3600 + 60 + 47


@pytest.mark.parametrize(
    "text",
    [
        "2026-07-05 03:01:47 x",
        "[2026-07-05T03:01:47+00:00] x",
        "Jul  5 03:01:47 g1 kernel: x",
        "[Sun Jul  5 03:01:47 2026] x",
        "E0705 03:01:47 123 api.py:9] x",
        "[rank3]:[W705 03:01:47 socket.cpp:1] x",
        "  time      : 2026-07-05_03:01:47",
        "  3b | 07/05/2026 | 03:01:47 | Fan FAN4 | Fully Redundant | Asserted",
    ],
)
def test_every_shape_gives_the_same_moment(text: str) -> None:
    """Logs with and without a year compare on one scale."""
    assert seconds_of_year(text) == FIFTH_OF_JULY


def test_fractions_are_kept() -> None:
    """Milliseconds order lines of one second."""
    assert seconds_of_year("2026-07-05 03:01:47,250 x") == FIFTH_OF_JULY + 0.25


@pytest.mark.parametrize("text", ["no date", "[ 5954.1519] up", "13:99:99", "2026-77-05 03:01:47"])
def test_a_line_without_a_date_has_no_moment(text: str) -> None:
    """Uptime is no wall clock, and an impossible date is none."""
    assert seconds_of_year(text) is None
