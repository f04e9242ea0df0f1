"""Tests that share the site of their module run in one worker, which brings it up once."""

import pytest


@pytest.fixture(scope="module")
def site() -> str:
    return __name__


@pytest.mark.parametrize("number", range(2))
def test_who_shares_a_modules_site_shares_its_worker(
    request: pytest.FixtureRequest, site: str, number: int
) -> None:
    """Xdist looks for groups once, while it collects: a mark that comes later is never seen."""
    assert (site, number < 2) == (__name__, True)
    module = request.node.nodeid.partition("::")[0]
    mark = request.node.get_closest_marker("xdist_group")
    assert mark is not None
    assert mark.args == (module,)
    if request.config.getoption("loadgroup", default=False):
        assert request.node.nodeid.endswith(f"@{module}")
