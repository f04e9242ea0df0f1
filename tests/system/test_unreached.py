"""The controller's own network fails: soon, no node is named, and the answer says where to look."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.timeouts import TIMEOUT_S

pytestmark = [
    pytest.mark.system,
    pytest.mark.netns,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]

NODES = 64
CONNECT_S = 5.0
WORK_S = 60.0
"""What the program itself computes takes so long at most, with twenty processes for each core of
the machine; waiting for node after node would take 320 s."""
SWALLOWED = (
    "ip link add out0 type veth peer name out1",
    "ip address add 10.77.0.1/16 dev out0",
    "ip link set out1 up",
    "ip link set out0 up",
    "ip neighbour add 10.77.0.2 lladdr 02:00:00:00:00:02 dev out0",
    "ip route add default via 10.77.0.2 dev out0",
)
"""A default route to a router that takes packets and sends none."""

FAILURES = {
    "no route": ((), "10.78.0.{i}", "ip route get"),
    "packets lost": (SWALLOWED, "10.78.0.{i}", "ip route get"),
    "name servers silent": (SWALLOWED, "gpu{i}.site.example", "getent hosts"),
    "ports closed": ((), "127.0.0.{i}", "ssh -v"),
}


def site(folder: Path, address: str) -> Path:
    nodes = "".join(
        f"  gpu{i:03d}: {{address: {address.format(i=i)}, leaf: leaf-{i % 4}}}\n"
        for i in range(1, NODES + 1)
    )
    head = "apiVersion: brctl.dev/v1\nkind: "
    (folder / "inventory.yaml").write_text(f"{head}Inventory\nnodes:\n{nodes}")
    (folder / "job.yaml").write_text(
        f"{head}Job\nname: llm\nnodes: gpu[001-{NODES:03d}]\nlaunch: [python, train.py]\n"
        "checkpoint: {directory: /ckpt}\nlogs: /logs\nprogress: /progress\n"
    )
    (folder / "config.yaml").write_text(
        f"{head}Config\ncontext: far\ncontexts:\n"
        "  far: {inventory: [{file: inventory.yaml}], jobs: [job.yaml]}\n"
        f"ssh: {{connect_timeout: {CONNECT_S:g}s}}\nstate_dir: state\n"
    )
    (folder / "resolv.conf").write_text("nameserver 10.99.0.1\nnameserver 10.99.0.2\n")
    return folder / "config.yaml"


def ask(config: Path, commands: tuple[str, ...], *words: str) -> tuple[int, dict[str, Any]]:
    """`brctl` in a network of its own that these commands set up."""
    argv = [sys.executable, "-m", "brctl", "--config", str(config), "-o", "json", *words]
    dns = f"mount --bind {shlex.quote(str(config.parent / 'resolv.conf'))} /etc/resolv.conf"
    script = " && ".join(["ip link set lo up", dns, *commands, f"exec {shlex.join(argv)}"])
    done = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c", script], capture_output=True, text=True,
        timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("{"), done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("failure", FAILURES)
def test_the_verdict_is_about_the_way_and_comes_within_two_deadlines(
    failure: str, tmp_path: Path
) -> None:
    """64 nodes of four leaves with a job on them; the program itself ends soon too."""
    commands, address, tells_more = FAILURES[failure]
    code, found = ask(site(tmp_path, address), commands, "dx")
    verdict = found["verdict"]
    assert code == 3
    assert verdict["title"].startswith(f"{NODES} of {NODES} nodes are not reached from this")
    assert (verdict["suspects"]["nodes"], verdict["action"]["playbook"]) == ([], None)
    assert verdict["settle"][0].startswith(tells_more)
    assert len(found["verdicts"]) == 1
    assert found["seconds"] <= 2 * CONNECT_S + WORK_S


def test_a_sweep_says_it_in_a_line_and_so_does_status(tmp_path: Path) -> None:
    config = site(tmp_path, "10.78.0.{i}")
    code, found = ask(config, (), "sweep")
    assert code == 3
    assert found["unreached"]["asked"] == len(found["unreached"]["nodes"]) == NODES
    code, status = ask(config, (), "status")
    assert status["unreached"] == found["unreached"]
