"""`brctl inventory` and `brctl schedule` on a context with two sources."""

import json
from pathlib import Path

import pytest

from brctl.cli.commands import inventory as inventory_module
from brctl.cli.commands import schedule as schedule_module
from brctl.model.errors import UsageError
from tests.cli.test_run import call

CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: prod
contexts: {prod: {inventory: [{hostlist: hosts}, {file: own.yaml}]}}
"""
OWN = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes: {"n[1-2]": {labels: {slots: 8}, role: standby}}
groups: {golden: n1}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "hosts").write_text("n1 slots=4\nn[2-4]\n")
    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path / "config.yaml"


def test_show_folds_roles_and_groups(config: Path) -> None:
    """Who takes ranks, who waits, and the declared groups."""
    _, text = call(inventory_module, config, "show")
    assert "4 nodes from hostlist:hosts, file:own.yaml" in text
    assert "@standby  2      n[1-2]" in text
    assert "@golden   1      n1" in text


def test_origin_names_the_winner_and_the_overruled(config: Path) -> None:
    """Every value with its file and line."""
    _, text = call(inventory_module, config, "show", "--origin", "-w", "n1")
    line = next(each for each in text.splitlines() if "slots" in each)
    assert "own.yaml:3" in line
    assert "not 4 (hostlist:" in line


def test_validate_lists_what_sources_disagree_about(config: Path) -> None:
    """One sentence per conflict; the document counts nodes."""
    _, text = call(inventory_module, config, "validate", "--json")
    document = json.loads(text)
    assert document["nodes"] == 4
    assert "n1: slots is 8" in document["conflicts"][0]


def test_sources_come_in_their_order(config: Path) -> None:
    """Later ones win."""
    _, text = call(inventory_module, config, "sources", "-o", "csv")
    assert text.split() == ["source,nodes,groups", "hostlist:hosts,4,0", "file:own.yaml,2,1"]


def test_a_schedule_keeps_the_selection(config: Path) -> None:
    """The printed command sweeps what this command line names, by absolute paths."""
    argv = ("cron", "--every", "30m", "-w", "@golden", "--program", "/usr/bin/brctl")
    _, text = call(schedule_module, config, *argv)
    assert text.splitlines()[1] == (
        f"*/30 * * * * /usr/bin/brctl sweep --cron --config {config} -w @golden --jitter 360s"
    )
    _, units = call(schedule_module, config, "systemd", "--program", "/usr/bin/brctl")
    assert "OnCalendar=*:0/5" in units


def test_the_standbys_test_can_be_scheduled_too(config: Path) -> None:
    """Its own unit names, once an hour, silent when all is well."""
    _, line = call(schedule_module, config, "cron", "--standby", "--program", "/usr/bin/brctl")
    wanted = f"0 */1 * * * /usr/bin/brctl standby test --cron --config {config}"
    assert line.splitlines()[1] == wanted
    _, units = call(schedule_module, config, "systemd", "--standby", "--program", "/usr/bin/brctl")
    assert "/etc/systemd/system/brctl-standby.timer" in units
    with pytest.raises(UsageError, match="tests the whole pool"):
        call(schedule_module, config, "cron", "--standby", "-w", "n1")


def test_a_bad_interval_names_its_flag(config: Path) -> None:
    """Seven minutes drift."""
    with pytest.raises(UsageError, match="--every: 7m00: must divide"):
        call(schedule_module, config, "cron", "--every", "7m")


def test_a_watch_can_be_a_service(config: Path) -> None:
    """It tells systemd that it looks, and a run it started outlives it."""
    argv = [
        "systemd",
        "--watch",
        "--program",
        "/usr/bin/brctl",
        "--policy",
        "/etc/brctl/watch.yaml",
    ]
    _, unit = call(schedule_module, config, *argv)
    assert "ExecStart=/usr/bin/brctl watch --wait --mode act --policy /etc/brctl/watch.yaml" in unit
    for line in ("Type=notify", "WatchdogSec=60", "KillMode=process", "Restart=on-failure"):
        assert f"\n{line}\n" in unit
    with pytest.raises(UsageError, match="looks all the time"):
        call(schedule_module, config, "systemd", "--watch", "--every", "5m")
