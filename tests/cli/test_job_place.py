"""`job place` and `standby size`: where ranks and standbys stand, and what is not known."""

import json
from pathlib import Path

import msgspec
import pytest

from brctl.cli.commands import job as job_module
from brctl.cli.commands import standby as standby_module
from brctl.model.errors import UsageError
from brctl.playbook.placement.price import PaceSeen
from tests.cli.test_run import call
from tests.fakes.site_files import local_config, write_site

JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: llm
nodes: n[1-8]
ranks_per_node: 8
parallel: {tp: 8, pp: 4, dp: 2}
launch: [train]
checkpoint: {directory: FOLDER/ckpt}
logs: FOLDER/logs
progress: FOLDER/progress
"""
SHUFFLED = "a b a b a b b b"
"""The spine of n1 to n8."""


def site(folder: Path, spines: str, *more: str) -> Path:
    """A site whose nodes have these spines; "-" writes none."""
    nodes = [
        f"  n{i}: {{}}" if spine == "-" else f"  n{i}: {{spine: {spine}}}"
        for i, spine in enumerate(spines.split(), start=1)
    ]
    head = "apiVersion: brctl.dev/v1\nkind: Inventory\nnodes:\n"
    return write_site(folder, local_config("job"), head + "\n".join([*nodes, *more, ""]), job=JOB)


def place(config: Path, *words: str) -> tuple[int, str]:
    return call(job_module, config, "place", *words)


def test_it_says_what_another_order_and_other_nodes_would_change(tmp_path: Path) -> None:
    """Both pipelines are split; by order one stays so, with a fourth node in a none."""
    code, text = place(site(tmp_path, SHUFFLED, "  s1: {role: standby, spine: a}"))
    assert code == 1
    rows = {line.split("  ")[0]: line.split()[-5:] for line in text.splitlines()}
    assert rows["now"] == ["2", "2/2", "2", "1/4", "-"]
    assert rows["rank order only"] == ["2", "1/2", "2", "3/4", "-"]
    assert "best             1       0/2" in text
    assert "1 in a" in text
    assert "worth (assumed): 2.0% of a step" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_the_document_names_every_node_of_each_order(tmp_path: Path) -> None:
    """A program can take the order as it stands."""
    config = site(tmp_path, SHUFFLED, "  s1: {role: standby, spine: a}")
    found = json.loads(place(config, "-o", "json")[1])
    assert (found["kind"], found["level"], found["domains"]) == ("Placement", "spine", ["a", "b"])
    now, order, best = found["orders"]
    assert now["nodes"] == [f"n{i}" for i in range(1, 9)]
    assert sorted(order["nodes"]) == sorted(now["nodes"])
    assert (best["moved_in"], best["slowdown_ratio"]) == (["s1"], 0.0)
    assert now["slowdown_ratio"] == 0.02
    assert now["seconds_until_next_stop"] == pytest.approx(0.02 * found["expected_uptime_seconds"])


def test_whole_groups_exit_0_and_without_slack_the_missing_node_is_named(tmp_path: Path) -> None:
    """Nothing is proposed where nothing is won."""
    code, text = place(site(tmp_path, "a a a a b b b b"))
    assert (code, "worth" in text) == (0, False)
    code, text = place(site(tmp_path, "a a a b b b b b"))
    assert code == 0
    assert "more free nodes would keep every group whole: 1 in a" in text


@pytest.mark.parametrize("spine", ["-", "unknown", '"\\x1b[31m"', "'?n2'"])
def test_a_node_nobody_knows_the_place_of_is_a_gap(tmp_path: Path, spine: str) -> None:
    """It is never taken for the same place as another, and the exit code is not 0."""
    code, text = place(site(tmp_path, f"a a a {spine} b b b b"))
    assert code == 3
    assert "UNKNOWN: no spine for n4; each counts as alone" in text
    assert "\x1b" not in text


def test_a_node_that_left_the_inventory_and_a_fleet_without_labels_are_gaps(
    tmp_path: Path,
) -> None:
    """The job still names it; nobody knows where it stands."""
    code, text = place(site(tmp_path, "a a a a b b b"))
    assert (code, "not in the inventory: n8" in text) == (3, True)
    code, text = place(site(tmp_path, "- - - - - - - -"))
    assert code == 3
    assert "UNKNOWN: no node has a label minipod, spine, pod, leaf, rack" in text


def test_a_level_that_no_node_has_is_refused(tmp_path: Path) -> None:
    """A typing error is not a fleet of unknown nodes."""
    with pytest.raises(UsageError, match="no node of llm has a label 'lief'"):
        place(site(tmp_path, SHUFFLED), "--level", "lief")


def test_only_an_order_that_splits_fewer_groups_can_be_applied(tmp_path: Path) -> None:
    """Its plan stops the job, orders the ranks and starts them; nothing else is accepted."""
    config = site(tmp_path, SHUFFLED)
    found = json.loads(place(config, "--apply", "rank-order", "-n", "-o", "json")[1])
    assert found["plan"]["playbook"] == "rank-order"
    inputs = found["plan"]["inputs"]
    assert sorted(inputs["after"]) == sorted(inputs["before"]) != inputs["after"]
    assert "next" not in place(site(tmp_path, "a a a a b b b b"))[1]
    with pytest.raises(UsageError, match="no other rank order of llm splits fewer groups"):
        place(config, "--apply", "rank-order")
    with pytest.raises(UsageError, match="only rank-order can be applied"):
        place(config, "--apply", "best")


def test_a_price_that_was_measured_here_takes_the_place_of_the_assumed_one(tmp_path: Path) -> None:
    config = site(tmp_path, SHUFFLED, "  s1: {role: standby, spine: a}")
    paces = tmp_path / "state" / "static" / "here.paces.json"
    paces.parent.mkdir(parents=True)
    seen = [PaceSeen("llm", "", width, step_s, 60) for width, step_s in ((1, 2.0), (2, 2.5))]
    paces.write_bytes(msgspec.json.encode(seen))
    code, text = place(config)
    assert (code, "worth (measured here, 1 comparisons): 25.0% of a step" in text) == (1, True)
    found = json.loads(place(config, "-o", "json")[1])
    assert (found["slowdown_a_domain_ratio"], found["orders"][0]["slowdown_ratio"]) == (0.25, 0.25)


def test_an_order_waits_for_the_next_restart_until_it_is_forgotten(tmp_path: Path) -> None:
    """It is on record with whom wanted it; nothing is stopped for it."""
    config = site(tmp_path, SHUFFLED)
    code, text = place(config, "--apply", "rank-order")
    assert code == 1
    assert "waits: rank order O-" in text
    found = json.loads(place(config, "-o", "json")[1])
    assert found["waiting"]["nodes"] == found["orders"][1]["nodes"]
    assert "waits" not in place(config, "--apply", "none")[1]
    assert json.loads(place(config, "-o", "json")[1])["waiting"] is None
    with pytest.raises(UsageError, match="no rank order of llm waits"):
        place(config, "--apply", "none")
    with pytest.raises(UsageError, match="go with --apply rank-order"):
        place(config, "--now")


def test_the_size_of_a_pool_comes_with_where_it_should_stand(tmp_path: Path) -> None:
    """Two standbys in a, none beside the pipeline in b, and no block of four."""
    pool = [f"  s{i}: {{role: standby, spine: a}}" for i in (1, 2)]
    config = site(tmp_path, "a a a a b b b b", *pool)
    text = call(standby_module, config, "size")[1]
    assert "they stand: 2 in a (label spine)" in text
    assert "no standby stands beside 1 of 2 pp groups; best one each in: b" in text
    assert "a pp group evicted whole needs 4 in one domain; the most are 2" in text
    found = json.loads(call(standby_module, config, "size", "-o", "json")[1])
    assert (found["place"]["wanted"], found["place"]["groups_without"]) == (["b"], 1)
