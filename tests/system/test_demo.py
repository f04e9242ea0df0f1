"""The main job, for real: real SSH, a real torch job, a real fault, a real restart.

Each fault names exactly the broken node, or no node where the code is to blame, and training
passes its old step on the same losses.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.timeouts import TIMEOUT_S

NEEDS_NETNS = ("node-dead", "node-frozen")
DEEP = ("gpu-lost", "gpu-ecc", "rank-hang", "node-frozen")
DEMO_S = 3 * TIMEOUT_S
"""A lab, a job, a fault, a diagnosis and a swap: each has its own limit inside."""

FAULTS = [
    "node-dead", "rank-crash",
    *(pytest.param(fault, marks=pytest.mark.deep) for fault in DEEP),
]  # fmt: skip
pytestmark = [pytest.mark.system, pytest.mark.torch]


def demo(folder: Path, *arguments: str) -> dict[str, object]:
    """The document of one `brctl lab demo`; it must exit 0."""
    environment = {**os.environ, "BRCTL_LAB_DIR": str(folder / "lab")}
    command = [sys.executable, "-m", "brctl", "lab", "demo", "--nodes", "3", "--standbys", "1"]
    done = subprocess.run(
        [*command, *arguments, "-o", "json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEMO_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    document: dict[str, object] = json.loads(done.stdout)
    return document


@pytest.mark.netns
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
@pytest.mark.parametrize("fault", FAULTS)
def test_the_demo_finds_the_fault_and_training_goes_on(fault: str, tmp_path: Path) -> None:
    document = demo(tmp_path, "--fault", fault, "--seed", "7", "--isolation", "netns")
    ends_well(document, blameless=fault == "rank-crash")
    assert not (tmp_path / "lab" / "lab.json").exists()


def test_the_demo_works_without_privileges(tmp_path: Path) -> None:
    """`--isolation none` needs neither root nor an installed SSH server."""
    document = demo(tmp_path, "--fault", "gpu-ecc", "--isolation", "none")
    assert document["named_right"] is True
    assert document["trained_on"] is True
    ends_well(document, blameless=False)


def ends_well(document: dict[str, object], *, blameless: bool) -> None:
    """The broken node alone is named, or none for the code's fault; the losses are the same."""
    truth, verdict = document["truth"], document["verdict"]
    assert isinstance(truth, dict)
    assert isinstance(verdict, dict)
    assert verdict["suspects"]["nodes"] == ([] if blameless else [truth["node"]])
    assert verdict["action"]["do"] == ("restart" if blameless else "swap")
    losses = document["losses"]
    assert isinstance(losses, dict)
    assert losses["before"] == losses["after"]
