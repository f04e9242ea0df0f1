"""A file that leaves itself out is a failure in CI; elsewhere it is a skip."""

import pytest

from tests.conftest import pytest_make_collect_report


@pytest.mark.parametrize(("ci", "outcome"), [("true", "failed"), ("", "skipped")])
def test_a_file_that_skips_itself_fails_in_ci(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, ci: str, outcome: str
) -> None:
    """`importorskip` at the head of a file is no report of a test, so no test's report says it."""
    monkeypatch.setenv("CI", ci)
    module = request.node.parent
    hook = pytest_make_collect_report(module)
    next(hook)
    skipped = pytest.CollectReport(module.nodeid, "skipped", (__file__, 1, "no torch"), [])
    with pytest.raises(StopIteration) as ended:
        hook.send(skipped)
    assert ended.value.value.outcome == outcome
    assert "no torch" in str(ended.value.value.longrepr)
