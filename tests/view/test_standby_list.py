"""`standby list` says what a standby saves a start."""

import pytest

from brctl.view.fleet.standby import standby_list_page
from brctl.view.notices.page import Json
from tests.fakes.documents import check_page

COLD: dict[str, Json] = {
    "node": "s1", "state": "free", "health": "ok", "tested_age_seconds": 5.0, "note": "",
    "warmed_age_seconds": None, "warm_seconds": None, "parked_for": None, "parked_ranks": None,
    "wanted_ranks": None, "parked_age_seconds": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("known", "says"),
    [
        ({}, "cold"),
        ({"warmed_age_seconds": 60.0, "warm_seconds": 182.0}, "warm, saves 3m02"),
        ({"warmed_age_seconds": 60.0}, "warm"),
    ],
)
def test_a_warm_standby_says_how_long_its_loading_took(known: dict[str, Json], says: str) -> None:
    """Torch on a host, images on Kubernetes."""
    page = standby_list_page([{**COLD, **known}])
    check_page(page, "lab")
    assert f"  {says}  " in page.text.splitlines()[1]
