"""`brctl burnin` and `brctl ecc` from the command line to the exit code."""

import json
from pathlib import Path

import pytest

from brctl.cli.main import run
from tests.engine.sweeps.test_burnin import CONFIG, INVENTORY, JOB
from tests.fakes.site_files import write_site


@pytest.fixture
def config(tmp_path: Path) -> str:
    return str(write_site(tmp_path, CONFIG, INVENTORY, python="/nowhere/python3", job=JOB))


def test_a_burn_in_needs_its_nodes_named(config: str) -> None:
    """Loading the whole fleet by leaving out -w is not possible."""
    assert run(["burnin", "run", "--config", config]) == 64


@pytest.mark.parametrize(
    "arguments", [["--stop-on", "xid,smoke"], ["--level", "1"], ["--duration", "long"]]
)
def test_a_stop_condition_that_makes_no_sense_is_refused(config: str, arguments: list[str]) -> None:
    """Nothing is loaded on a slip of the pen."""
    assert run(["burnin", "run", "-w", "n1", "--config", config, *arguments]) == 64


def test_a_busy_node_is_refused(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A guard refuses, with exit 5, and says how to go on."""
    assert run(["burnin", "run", "-w", "n2", "--level", "2", "--config", config]) == 5
    assert "--beside-job" in capsys.readouterr().err


def test_a_node_that_cannot_be_loaded_is_not_passed(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No interpreter on the node: exit 3, and other terminals see why."""
    arguments = ["--level", "2", "--duration", "1s", "--config", config, "--json"]
    assert run(["burnin", "run", "-w", "n1", *arguments]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["nodes"][0]["state"] == "unfinished"
    assert run(["burnin", "status", "--config", config]) == 3
    assert run(["burnin", "results", "n1", "--config", config]) == 3
    assert run(["burnin", "stop", "--config", config]) == 3
    assert "does not run" in capsys.readouterr().err


def test_results_of_a_node_never_burned_in_are_unknown(config: str) -> None:
    """Silence is not health."""
    assert run(["burnin", "results", "n1", "--config", config]) == 3
    assert run(["burnin", "status", "--config", config]) == 64


def test_memory_errors_that_cannot_be_read_are_unknown(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ecc pending` on a node that gives nothing does not say that nothing is pending."""
    assert run(["ecc", "pending", "-w", "n1", "--config", config, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["not_checked"][0]["node"] == "n1"
    assert run(["ecc", "show", "-w", "n1", "--config", config]) == 3
    assert run(["ecc", "history", "n1", "--config", config]) == 3
    assert run(["ecc", "history", "n1", "--since", "ever", "--config", config]) == 64
