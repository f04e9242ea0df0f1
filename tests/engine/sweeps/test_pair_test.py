"""`brctl check pairs` on real nodes: wrong bits and a slow cable are found and named."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest
import yaml

from brctl.cli.main import run
from brctl.engine.search import group_runner_torch
from brctl.engine.sweeps import pair_check
from brctl.lab.cluster import Lab, up
from brctl.lab.faults import SLOW_LINK
from brctl.lab.namespaces import missing, shape_link
from brctl.lab.spec import Isolation, LabSpec
from tests.engine.search.harmful_torch import write_interpreter
from tests.timeouts import TIMEOUT_S

pytestmark = [pytest.mark.netns, pytest.mark.torch, pytest.mark.system]

NODES = "n[1-4]"


class PairTestKeys(TypedDict):
    """The keys these tests read."""

    pairs: list[dict[str, Any]]
    suspects: dict[str, list[str]]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Four nodes that a job is declared on, and a standby."""
    why = missing()
    if why:
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("pairs") / "lab"
    lab = up(LabSpec(nodes=4, standbys=1, gpus=1, isolation=Isolation.NETNS), folder)
    yield lab
    lab.down()


def exchange(lab: Lab, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, PairTestKeys]:
    """Exit code and document of one test, small because the cores are shared."""
    capsys.readouterr()
    command = ["check", "pairs", "--config", str(lab.paths.config), "--json", "--size", "1M"]
    code = run([*command, "--reps", "3", "--beside-job", *words])
    return code, json.loads(capsys.readouterr().out)


def test_wrong_bits_name_the_node_between_two_bad_pairs(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One element in one node's memory, in one operation: the check convicts that node alone."""
    # Four nodes share the cores here: one pair may take much longer than the other.
    monkeypatch.setattr(group_runner_torch, "_MIN_TIMEOUT_S", TIMEOUT_S)
    small = {"size_bytes": 1 << 18, "reps": 2}
    monkeypatch.setattr(pair_check, "_whole", lambda _, key: small[key])
    inventory = lab.paths.config.parent / "inventory.yaml"
    before = inventory.read_text()
    wrapper = write_interpreter(tmp_path / "python", "all_to_all_single", "tensor[7] += 1")
    document = yaml.safe_load(before)
    document["nodes"]["n3"]["torch_python"] = str(wrapper)
    inventory.write_text(yaml.safe_dump(document))
    capsys.readouterr()
    command = ["check", "run", "fabric.pairs", "--config", str(lab.paths.config), "--json"]
    try:
        code = run([*command, "-w", NODES, "--beside-job"])
    finally:
        inventory.write_text(before)
    actual = json.loads(capsys.readouterr().out)
    against = [
        (row["node"], row["class"], row["weight"])
        for node in actual["nodes"]
        for row in node["evidence"]
        if row["weight"] in ("convicts", "hints")
    ]
    assert against == [("n3", "silent-corruption", "convicts")], actual["nodes"]
    assert code == 2


@pytest.mark.deep
def test_a_cable_that_is_slow_one_way_is_named(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """20 Mbit/s towards one node slows both of its pairs, that way alone; every bit is right."""
    cable = lab.record.interface("n2")
    shape_link(cable, SLOW_LINK)
    try:
        code, found = exchange(lab, capsys, "-w", NODES)
    finally:
        shape_link(cable, None)
    assert code == 1
    assert found["suspects"] == {"nodes": ["n2"]}
    assert {pair["failed"] for pair in found["pairs"]} == {0}
    paths = {tuple(p["nodes"]): p["path"] for p in found["pairs"] if p["op"] == "pingpong"}
    towards, away = paths["n1", "n2"]["there_gb_per_s"], paths["n1", "n2"]["back_gb_per_s"]
    assert 0.001 < towards < 0.0027 < away / 4  # 20 Mbit/s are 0.0025 GB/s


def test_nodes_with_ranks_are_left_alone(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 5 unless somebody says to test beside the job; a pair needs two nodes."""
    base = ["check", "pairs", "--config", str(lab.paths.config)]
    assert run([*base, "-w", "n[1-2]"]) == 5
    assert "n[1-2] carries ranks of lab-train" in capsys.readouterr().err
    assert run([*base, "-w", "n5"]) == 64
    assert run(base) == 64
