"""Real nodes with network namespaces: `nccl bisect` finds each fault by collectives alone."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from brctl.cli.main import run
from brctl.engine.search import group_runner_torch
from brctl.lab.cluster import Lab, take_down, up
from brctl.lab.namespaces import enter, missing
from brctl.lab.spec import Isolation, LabPaths, LabSpec
from tests.engine.search.harmful_torch import write_interpreter
from tests.timeouts import TIMEOUT_S

pytestmark = [pytest.mark.netns, pytest.mark.torch, pytest.mark.system]

NODES = 8


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    why = missing()
    if why:
        pytest.skip(why)
    directory = tmp_path_factory.mktemp("bisect-lab")
    spec = LabSpec(nodes=NODES, standbys=0, gpus=1, isolation=Isolation.NETNS)
    try:
        yield up(spec, directory)
    finally:
        take_down(LabPaths(directory))


def words(lab: Lab, *flags: str) -> list[str]:
    short = ["--config", str(lab.paths.config), "--reps", "4", "--budget", "600s", "-o", "json"]
    return ["nccl", "bisect", *short, *flags]


def run_bisect(lab: Lab, *flags: str) -> tuple[int, dict[str, object]]:
    """The command a person types, and its document."""
    began = time.monotonic()
    command = [sys.executable, "-m", "brctl", *words(lab, *flags)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    sys.stderr.write(
        f"\n{flags}: {document.get('verdicts')} {time.monotonic() - began:.1f} s wall\n"
    )
    return done.returncode, document


def named(document: dict[str, object]) -> list[tuple[str, list[str]]]:
    verdicts = document["verdicts"]
    assert isinstance(verdicts, list)
    return [(verdict["kind"], verdict["members"]) for verdict in verdicts]


def use_torch(lab: Lab, node: str, harm: str, directory: Path) -> None:
    """Give one node an interpreter whose torch does harm."""
    path = write_interpreter(directory / f"python-{node}", "all_reduce", harm)
    inventory = lab.paths.config.parent / "inventory.yaml"
    document = yaml.safe_load(inventory.read_text())
    document["nodes"][node]["torch_python"] = str(path)
    inventory.write_text(yaml.safe_dump(document))


def honest_torch(lab: Lab, node: str) -> None:
    inventory = lab.paths.config.parent / "inventory.yaml"
    document = yaml.safe_load(inventory.read_text())
    del document["nodes"][node]["torch_python"]
    inventory.write_text(yaml.safe_dump(document))


@pytest.mark.deep
def test_a_slow_cable_is_named(lab: Lab) -> None:
    """A node behind 20 Mbit/s is named, as slow or as failing, and nobody else is."""
    lab.break_node("link-slow", "n6")
    try:
        code, document = run_bisect(lab, "--size", "256K", "--bar", "0.5")
    finally:
        lab.heal("n6")
    assert code == 2
    assert [members for _, members in named(document)] == [["n6"]]


@pytest.mark.deep
def test_a_lossy_cable_is_named(lab: Lab) -> None:
    """A node that loses a fifth of its packets is named, and nobody else is."""
    rules = "add table inet l; add chain inet l i { type filter hook input priority 0; }; "
    rules += "add rule inet l i tcp dport != 22 tcp sport != 22 numgen random mod 100 < 20 drop"
    enter(lab.paths, "n3", ["nft", rules])
    try:
        code, document = run_bisect(lab, "--size", "8M", "--bar", "0.5")
    finally:
        enter(lab.paths, "n3", ["nft", "delete", "table", "inet", "l"])
    assert code == 2
    assert [members for _, members in named(document)] == [["n3"]]


def test_one_wrong_element_is_named(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that changes one element of each all-reduce fails its groups, bit by bit."""
    # Four nodes share the cores here: one group may take much longer than the other.
    monkeypatch.setattr(group_runner_torch, "_MIN_TIMEOUT_S", TIMEOUT_S)
    use_torch(lab, "n2", "tensor.view(-1)[7] += 1", tmp_path)
    try:
        code = run(words(lab, "--size", "1M", "--bar", "0.3", "-w", "n[1-4]"))
    finally:
        honest_torch(lab, "n2")
    document = json.loads(capsys.readouterr().out)
    assert code == 2
    assert named(document) == [("node", ["n2"])]


@pytest.mark.deep
def test_a_hanging_node_is_cut_and_named(lab: Lab, tmp_path: Path) -> None:
    """A node that never ends a collective holds up its group only, and is named."""
    use_torch(lab, "n7", "time.sleep(3600)", tmp_path)
    try:
        code, document = run_bisect(lab, "--size", "1M", "--bar", "0.3")
    finally:
        honest_torch(lab, "n7")
    assert code == 2
    assert named(document) == [("node", ["n7"])]
    seconds = document["seconds"]
    assert isinstance(seconds, float)
    assert seconds < 120
