"""`brctl nodes` and `brctl report` over sweeps on disk; no node is asked."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from brctl.cli.commands import nodes as nodes_module
from brctl.cli.commands import report as report_module
from brctl.engine.controller.clock import now
from brctl.engine.sweeps.history import SweepHistory
from brctl.engine.sweeps.sweep_store import save
from brctl.model.command import Outcome
from brctl.model.errors import UsageError
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus
from brctl.model.sweeps.sweep import Health, NodeHealth, Sweep
from tests.cli.test_run import call
from tests.sweep.healths import node

CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: prod
state_dir: state
contexts: {prod: {inventory: [{file: own.yaml}]}}
"""
OWN = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes: {"n[1-4]": {rack: r12}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path / "config.yaml"


def record(config: Path, minutes_ago: float, nodes: list[NodeHealth]) -> None:
    """A sweep as `brctl sweep` leaves it behind."""
    at = now() - timedelta(minutes=minutes_ago)
    swept = Sweep(f"S-{at:%Y%m%dT%H%M%S%f}", 1, ("gpu.ecc",), at, 1.0, tuple(nodes))
    save(config.parent / "state", swept)
    SweepHistory(config.parent / "state").record(swept, {}, timedelta(days=1))


def versioned(name: str, driver: str) -> NodeHealth:
    measured = (Measurement("host.versions.driver", "", driver),)
    result = CheckResult("host.versions", ProbeStatus.MEASURED, measured)
    return NodeHealth(name, Health.OK, NodeReport(name, Outcome.ANSWERED, (result,)), (), ())


def test_the_page_of_a_node_has_its_state_its_facts_and_its_past(config: Path) -> None:
    """The past only when asked for, and only as far back as asked."""
    record(config, 3000, [node("n1", Health.WARNING, "host.cpu")])
    record(config, 60, [node("n1", Health.CRITICAL)])
    code, text = call(nodes_module, config, "show", "n1")
    assert code == 2
    assert text.startswith("n1  CRIT  answered")
    assert "rack" in text
    assert "gpu.ecc  n1 is bad" in text
    assert "history" not in text
    _, text = call(nodes_module, config, "show", "n1", "--history", "1d")
    assert "1h00 ago  NEW  CRIT  gpu.ecc  n1 is bad" in text
    assert "host.cpu" not in text
    _, text = call(nodes_module, config, "show", "n1", "--history", "7d", "--json")
    reported = [(each["what"], each["check"]) for each in json.loads(text)["history"]]
    assert reported == [("new", "host.cpu"), ("new", "gpu.ecc")]


def test_a_node_that_was_never_swept_is_unknown(config: Path) -> None:
    """Not healthy, and the next command is the sweep."""
    code, text = call(nodes_module, config, "show", "n2", "--history", "7d")
    assert (code, text.splitlines()[0]) == (3, "n2  UNKNOWN  never swept")
    assert text.splitlines()[-1] == "history: no check changed"
    with pytest.raises(UsageError, match="n22: not in the inventory") as refused:
        call(nodes_module, config, "show", "n22")
    assert "did you mean" in str(refused.value.hint)


def test_diff_names_the_reference_first_and_the_odd_one_below(config: Path) -> None:
    """Nodes without an answer are named too, and exit 3 says so."""
    record(config, 1, [versioned(f"n{i}", "570.133" if i == 3 else "570.148") for i in (1, 2, 3)])
    code, text = call(nodes_module, config, "diff", "n[1-3]")
    assert code == 1
    head, *rest = text.splitlines()
    assert head.startswith("reference n[1-2] (2)  1 facts compared  data 1m")
    assert rest == ["n3  host.versions.driver  570.133  (ref 570.148)"]
    code, text = call(nodes_module, config, "diff")
    assert code == 3
    assert text.splitlines()[2].split() == ["n4", "UNKNOWN", "not", "swept"]
    assert call(nodes_module, config, "diff", "-o", "name")[1] == "n3\n"
    with pytest.raises(UsageError, match="once"):
        call(nodes_module, config, "diff", "n1", "-w", "n2")


def test_nodes_alone_lists_them(config: Path) -> None:
    """`brctl nodes`, `brctl nodes list` and `brctl ls` are one."""
    record(config, 1, [node("n1", Health.CRITICAL)])
    bare = call(nodes_module, config, "--state", "crit")[1].splitlines()
    listed = call(nodes_module, config, "list", "--state", "crit")[1].splitlines()
    assert bare[:-1] == listed[:-1]
    # Time passes between the two: how old the data is may differ, and not in its shape.
    assert all(re.fullmatch(r"data \d+m\d\d old", lines[-1]) for lines in (bare, listed))
    assert [line.split()[:2] for line in bare[:-1]] == [["STATE", "NODES"], ["CRIT", "n1"]]


def test_the_list_in_the_order_and_with_the_columns_one_asks_for(config: Path) -> None:
    """Equal lines share their nodes; labels of the inventory are columns too."""
    record(config, 1, [node("n1"), node("n2", Health.CRITICAL), node("n3", Health.WARNING)])
    text = call(nodes_module, config, "--columns", "node,state,rack", "--sort", "state")[1]
    assert [line.split() for line in text.splitlines()[:-1]] == [
        ["NODES", "STATE", "RACK"], ["n2", "CRIT", "r12"], ["n3", "WARN", "r12"],
        ["n1", "OK", "r12"], ["n4", "not", "swept", "r12"],
    ]  # fmt: skip
    text = call(nodes_module, config, "--columns", "rack,node")[1]
    assert [line.split() for line in text.splitlines()[:-1]] == [
        ["RACK", "NODES"], ["r12", "n[1-4]"],
    ]  # fmt: skip
    arguments = ("list", "--sort", "state", "--columns", "node,check", "-o", "csv")
    assert call(nodes_module, config, *arguments)[1].split() == [
        "node,check", "n2,gpu.ecc", "n3,gpu.ecc", "n1,", "n4,",
    ]  # fmt: skip
    assert call(nodes_module, config, "--sort", "state", "-o", "name")[1].split()[0] == "n2"
    whole = json.loads(call(nodes_module, config, "--columns", "node", "--json")[1])
    assert "detail" in whole["nodes"][0]
    with pytest.raises(UsageError, match=r"--columns rakc: no such column; known: .*rack"):
        call(nodes_module, config, "--columns", "rakc")
    with pytest.raises(UsageError, match="--sort since: no such column; known: node, role, state"):
        call(nodes_module, config, "--sort", "since")
    with pytest.raises(UsageError, match="-R has columns of its own"):
        call(nodes_module, config, "-R", "--sort", "node")


def test_flappers_are_reported_worst_first(config: Path) -> None:
    """Of the nodes that are chosen, within the time asked."""
    for i in range(12):
        bad = Health.CRITICAL if i % 3 == 0 else Health.OK
        record(config, 120 - i, [node("n1", bad), node("n2", Health.CRITICAL)])
    code, text = call(report_module, config, "flappers")
    assert code == 0
    assert text.splitlines() == [
        "NODE  CHECK    TIMES", "n1    gpu.ecc  4", "12 sweeps in the last 7d",
    ]  # fmt: skip
    assert "nothing comes and goes" in call(report_module, config, "flappers", "-w", "n2")[1]


def test_no_sweep_is_not_no_flapper(config: Path) -> None:
    """Exit 3 and the words: nothing was looked at."""
    code, text = call(report_module, config, "flappers", "--since", "1h")
    assert (code, text) == (3, "UNKNOWN  no sweep was recorded in the last 1h\n")


def test_the_fleet_on_one_page(config: Path) -> None:
    """States, hardware, versions, who is silent since when, what flaps; and nothing made up."""
    own = "nodes: {n1: {gpus: 8, gpu_model: H100}, 'n[2-4]': {gpus: 8}}\n"
    (config.parent / "own.yaml").write_text(OWN.partition("nodes:")[0] + own)
    code, text = call(report_module, config, "fleet")
    assert code == 3
    assert text.startswith("4 nodes  never swept; run: brctl sweep\n\nSTATE      COUNT  NODES\n")
    for i in range(12):
        bad = Health.CRITICAL if i % 3 == 0 else Health.OK
        record(config, 120 - i, [node("n2", bad), node("n3", Health.UNKNOWN)])
    record(
        config,
        2,
        [versioned("n1", "570.148"), versioned("n2", "570.133"), node("n3", Health.UNKNOWN)],
    )
    code, text = call(report_module, config, "fleet")
    assert code == 0
    tables = [[line.split(None, 3) for line in part.splitlines()] for part in text.split("\n\n")]
    assert tables[1][1:] == [
        ["UNKNOWN", "1", "n3"],
        ["OK", "2", "n[1-2]"],
        ["not", "swept", "1", "n4"],
    ]
    assert "3      n[2-4]" in text
    assert "8 x H100 by the inventory" in text
    assert tables[3][1:] == [["host.versions.driver", "570.133", "1", "n2"], ["570.148", "1", "n1"]]
    assert tables[4][1:] == [["n4", "-", "never", "swept"], ["n3", "2h00", "no", "TCP connection"]]
    assert tables[5][1:] == [["n2", "gpu.ecc", "4"]]
    found = json.loads(call(report_module, config, "fleet", "--json")[1])
    assert found["kind"] == "Fleet"
    assert found["states"]["not swept"]["folded"] == "n4"
    assert [s["node"] for s in found["silent"]] == ["n4", "n3"]
    assert found["silent"][0]["since"] is None
    assert found["versions"]["host.versions.driver"][0] == {
        "is": "570.133", "count": 1, "nodes": ["n2"], "folded": "n2",
    }  # fmt: skip
    assert call(report_module, config, "fleet", "-w", "n4")[0] == 3
