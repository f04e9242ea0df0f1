"""Fleet files: what cannot be is refused with its line."""

from pathlib import Path

import pytest

from brctl.model.errors import ConfigError, UsageError
from brctl.simulate.fleet_file import SHIPPED, find_fleet, load_fleet, named_fleets

GOOD = (SHIPPED / "paper-means.yaml").read_text(encoding="utf-8")


def refused(tmp_path: Path, before: str, after: str) -> str:
    assert before in GOOD
    path = tmp_path / "fleet.yaml"
    path.write_text(GOOD.replace(before, after), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_fleet(path)
    return str(caught.value).removeprefix(f"{path}:")


@pytest.mark.parametrize("name", named_fleets())
def test_each_shipped_fleet_is_read_and_named_as_its_file(name: str) -> None:
    fleet = find_fleet(name)
    assert fleet.name == name
    assert sum(fleet.shares.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("  nodes: 1200", "  noodes: 1200", "unknown key 'noodes' in job; did you mean 'nodes'?"),
        ("  nodes: 1200", "  nodes: 0", "'nodes' is 0; it can be 1 to 1e+06"),
        ("  nodes: 1200", "  nodes: 4", "'group_nodes' is 8; it can be 1 to 4"),
        ("days: 90", "days: -3", "'days' is -3; it can be 0.01 to 3650"),
        ("  warm: 70.7s", "  warm: 70.7", "'warm' must be text, not a number"),
        ("  warm: 70.7s", "  warm: 0s", "'warm' must be longer than 0"),
        ("  warm: 70.7s", "  warm: 70 sec", "not a duration"),
        ("1.6204", "-1", "'per_1000_node_days' is -1"),
        ("manual: 20", "manuel: 20", "unknown key 'manuel'"),
        ("explicit: 128, implicit: 27, manual: 20", "explicit: 0", "nothing can fail"),
        ("  families:", "  symptoms: {hang: 1}\n  families:", "either 'families' or 'symptoms'"),
    ],
)
def test_a_fleet_that_cannot_be_is_refused_with_its_line(
    tmp_path: Path, before: str, after: str, said: str
) -> None:
    error = refused(tmp_path, before, after)
    assert said in error
    assert int(error.partition(":")[0]) > 1


def test_an_unknown_name_is_told_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'paper-means'"):
        find_fleet("paper-mean")


def test_the_dense_job_of_the_paper_is_the_one_that_was_observed() -> None:
    assert find_fleet("paper-dense") == find_fleet("paper-observed")
