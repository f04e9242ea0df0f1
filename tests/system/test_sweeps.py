"""`brctl sweep` on a lab: nothing on a clean one, however often; a fault on exactly its node."""

import json
import os
from collections.abc import Iterator

import pytest

from brctl.cli.main import run
from brctl.lab.cluster import Lab, up
from brctl.lab.faults import FAULTS
from brctl.lab.spec import Isolation, LabSpec

CLEAN_SWEEPS = 8
"""Enough to see a check that cries wolf every few sweeps; `tests.bench.clean_sweeps` runs 200."""

HARDWARE = (
    "gpu-ecc", "row-remap-failure", "gpu-lost", "pcie-degraded", "thermal", "nvlink-down",
    "clock-skew", "disk-full",
)  # fmt: skip
pytestmark = [
    pytest.mark.system,
    pytest.mark.netns,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Three nodes and a standby, nothing of them shared."""
    folder = tmp_path_factory.mktemp("sweeps") / "lab"
    lab = up(LabSpec(nodes=3, standbys=1, isolation=Isolation.NETNS), folder)
    yield lab
    lab.down()


def look(lab: Lab, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, object]]:
    """Exit code of one sweep, and the nodes that are not well with what was said of them."""
    capsys.readouterr()
    code = run(["sweep", "--config", str(lab.paths.config), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert len(document["nodes"]) == 4
    return code, {n["node"]: n["evidence"] for n in document["nodes"] if n["state"] != "ok"}


def test_a_clean_lab_stays_clean(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """No check cries wolf: neither warnings nor gaps, in any of the sweeps."""
    assert [look(lab, capsys) for _ in range(CLEAN_SWEEPS)] == [(0, {})] * CLEAN_SWEEPS


@pytest.mark.parametrize("fault", HARDWARE)
def test_a_fault_is_found_on_its_node_alone(
    lab: Lab, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The broken node and the right kind of fault; its neighbours stay well, and so it heals."""
    lab.break_node(fault, "n2")
    try:
        code, found = look(lab, capsys)
    finally:
        lab.heal("n2")
    assert code in (1, 2)
    assert list(found) == ["n2"]
    assert FAULTS[fault].expected in json.dumps(found["n2"])
    healed = look(lab, capsys)
    assert healed == (0, {}), json.dumps(healed)
