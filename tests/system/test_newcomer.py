"""From an empty home and a host list to a first sweep of ten nodes: four commands, no editor."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brctl.inventory.load import load_inventory
from brctl.lab.cluster import Lab, up
from brctl.lab.spec import Isolation, LabSpec
from brctl.library.config import load_settings
from tests.timeouts import TIMEOUT_S

MOST_COMMANDS = 6
pytestmark = [
    pytest.mark.system,
    pytest.mark.netns,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Eight nodes and two standbys; the newcomer does not know which are which."""
    lab = up(
        LabSpec(nodes=8, standbys=2, isolation=Isolation.NETNS),
        tmp_path_factory.mktemp("newcomer") / "lab",
    )
    yield lab
    lab.down()


def test_six_commands_at_most_lead_to_a_first_sweep(lab: Lab, tmp_path: Path) -> None:
    """All that the newcomer has is the addresses, a login and a key."""
    settings = load_settings(config=lab.paths.config)
    nodes = load_inventory(settings).nodes.values()
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("".join(f"{node.address}\n" for node in nodes))
    home = tmp_path / "home"
    home.mkdir()
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    user = settings.ssh.user or next(iter(nodes)).user or "root"
    gpus = str(next(iter(nodes)).gpus)
    key = str(settings.ssh.identity_files[0])
    commands = [
        [
            "config",
            "init",
            "--hosts",
            str(hosts),
            "--user",
            user,
            "--identity",
            key,
            "--gpus",
            gpus,
        ],
        ["inventory", "trust", "-w", "@all"],
        ["inventory", "trust", "-w", "@all", "--yes"],
        ["sweep"],
    ]
    assert len(commands) <= MOST_COMMANDS
    ends = [
        subprocess.run(
            [sys.executable, "-m", "brctl", *words], env=environ, cwd=home, capture_output=True,
            text=True, timeout=TIMEOUT_S, check=False,
        )
        for words in commands
    ]  # fmt: skip
    said = "\n".join(end.stdout + end.stderr for end in ends)
    assert ends[0].returncode == 0, said
    assert "next: brctl inventory trust -w @all   or: brctl sweep" in ends[0].stderr
    assert ends[2].returncode == 0, said
    assert "10 nodes" in ends[3].stdout, said
    assert "connect-timed-out" not in ends[3].stdout
    assert "host-key-mismatch" not in ends[3].stdout
    assert ends[3].returncode in (0, 1), said
