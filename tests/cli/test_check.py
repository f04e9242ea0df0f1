"""`brctl check run`: heavy checks and the nodes that a job trains on."""

import json
import sys
from pathlib import Path

import pytest

from brctl.cli.main import run
from tests.engine.sweeps.test_burnin import CONFIG, GEMM, INVENTORY, JOB, PROBE


@pytest.fixture
def config(tmp_path: Path) -> str:
    """n2 carries the job; `gpu.gemm` is a stand-in of level 2 that answers at once."""
    check = tmp_path / "checks/gpu/gemm"
    check.mkdir(parents=True)
    (tmp_path / "kmsg").write_text("")
    for name, text in (
        ("config.yaml", CONFIG), ("inventory.yaml", INVENTORY), ("job.yaml", JOB),
        ("checks/gpu/gemm/check.yaml", GEMM), ("checks/gpu/gemm/probe.py", PROBE),
    ):  # fmt: skip
        text = text.replace("FOLDER", str(tmp_path)).replace("PYTHON", sys.executable)
        (tmp_path / name).write_text(text.replace("WRONG", "0"))
    return str(tmp_path / "config.yaml")


def test_a_heavy_check_refuses_a_node_with_ranks(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 5 names the node and its job, and nothing was run on the idle one either."""
    assert run(["check", "run", "gpu.gemm", "-w", "n[1-2]", "--config", config]) == 5
    output = capsys.readouterr().err
    assert "n2 carries ranks of llm" in output
    assert "--beside-job" in output
    assert not (Path(config).parent / "state/sweeps").exists()


@pytest.mark.parametrize("arguments", [["-w", "n1"], ["-w", "n2", "--beside-job"]])
def test_a_heavy_check_runs_where_it_may(
    config: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """On an idle node as it is, on a busy one when somebody says so."""
    assert run(["check", "run", "gpu.gemm", "--config", config, "--json", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["sweep"]["checks"] == ["gpu.gemm"]


def test_light_checks_need_no_leave(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Level 1 is safe beside a job, also as the light part of a pattern that has heavy ones."""
    assert run(["check", "run", "gpu.xid", "-w", "n2", "--config", config]) == 0
    assert run(["check", "run", "gpu.[gx]*", "-w", "n2", "--level", "1", "--config", config]) == 0
    capsys.readouterr()
    assert run(["check", "run", "gpu.[gx]*", "-w", "n2", "--config", config]) == 5


def test_a_diagnosis_loads_no_links_beside_a_job_unless_somebody_says_so(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`dx --level 2` slowed the job that it was asked about, without a word."""
    assert run(["dx", "-w", "n2", "--level", "2", "--config", config]) == 5
    refused = capsys.readouterr().err
    assert "carries ranks of" in refused
    assert "--beside-job" in refused
    assert not (Path(config).parent / "state/sweeps").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["check", "run", "gpu.gemm", "-w", "n1"],
        ["sweep", "--level", "2", "-w", "n1"],
        ["burnin", "run", "--level", "2", "--duration", "1s", "-w", "n1"],
        ["check", "pairs", "-w", "n[1-2]", "--beside-job"],
        ["nccl", "bisect", "-w", "n[1-2]"],
        ["nccl", "bisect", "-w", "n[1-2]", "--runner", "exec:/bin/false"],
        ["replay", "run"],
        ["play", "abort", "R-0001"],
        ["cp", "-w", "n1", "/etc/hostname", "/nowhere/at/all"],
        ["ssh", "n1"],
    ],
)
def test_a_readonly_context_puts_no_load_on_nodes_and_stops_no_run(
    config: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 5 before any node is asked."""
    assert run([*words, "--readonly", "--config", config]) == 5
    assert "read-only" in capsys.readouterr().err
    assert not (Path(config).parent / "state/sweeps").exists()
    assert not (Path(config).parent / "state/burnin").exists()


def test_a_readonly_context_may_be_looked_at(config: str) -> None:
    assert run(["check", "run", "gpu.xid", "-w", "n2", "--readonly", "--config", config]) == 0
