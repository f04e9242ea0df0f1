"""swap-and-resume on Kubernetes, killed in the middle: real kubectl, a stand-in cluster.

The API server, its controllers and the kubelets are `tests/fakes/kube`; pods are real processes,
and the checkpoint is one that torch wrote. No real cluster is involved.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brctl.backends.contract import Backend
from brctl.backends.open import open_backend
from brctl.fanout.local import LocalTransport
from brctl.inventory.load import load_inventory
from brctl.library.config import load_settings
from brctl.library.jobs import load_job
from brctl.model.jobs.job import Job
from tests.fakes.kube.cluster import KubeCluster, kube_cluster, no_kubectl
from tests.fakes.kube.site import write_site

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.system,
    pytest.mark.torch,
    pytest.mark.skipif(no_kubectl(), reason="not installed: kubectl"),
    # One process saves here; torch says so as a warning.
    pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning"),
]
STEP = 20
TRAINER = """
import json, os, sys, time
folder, rank = sys.argv[1], int(os.environ["JOB_COMPLETION_INDEX"])
told = os.environ.get("BRCTL_RESUME_FROM", "")
step = int(told.rpartition("-")[2]) if told else 0
while True:
    step += 1
    path = "%s/rank-%05d.json" % (folder, rank)
    with open(path + ".part", "w") as stream:
        json.dump({"rank": rank, "step": step, "told": told, "at": time.time()}, stream)
    os.replace(path + ".part", path)
    time.sleep(0.1)
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KubeCluster]:
    """Three nodes and a standby; a Job as a user would have applied it, suspended."""
    for name in ("ckpt", "logs", "progress"):
        (tmp_path / name).mkdir()
    write_site(tmp_path)
    import torch.distributed.checkpoint as dcp

    dcp.save({"w": torch.ones(8)}, checkpoint_id=tmp_path / f"ckpt/step-{STEP:08d}", no_dist=True)
    with kube_cluster(tmp_path, ["n1", "n2", "n3", "s1"], ["s1"]) as cluster:
        command = [sys.executable, "-c", TRAINER, str(tmp_path / "progress")]
        cluster.add_job("trainer", "demo", 3, command)
        yield cluster


def the_backend(folder: Path) -> tuple[Backend, Job]:
    settings = load_settings(os.environ, config=folder / "config.yaml")
    found = open_backend(settings, LocalTransport(), load_inventory(settings))
    return found, load_job(folder / "job.yaml")


def command(folder: Path, *arguments: str) -> list[str]:
    config = str(folder / "config.yaml")
    return [sys.executable, "-m", "brctl", *arguments, "--config", config, "--no-input"]


def events(folder: Path) -> list[dict[str, Any]]:
    path = folder / "state" / "runs" / "R-0001" / "events.ndjson"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def has_begun(folder: Path, step: str) -> bool:
    return any(e["type"] == "step.intent" and e["step"] == step for e in events(folder))


def killed_while_it_restarts(folder: Path) -> None:
    """Start the swap, and end its run and its terminal at once while the pods come up."""
    arguments = ("swap", "n3", "--job", "demo", "-m", "dead", "--confirm", "swap 1")
    terminal = subprocess.Popen(command(folder, *arguments), stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 400
        while not has_begun(folder, "restart"):
            assert terminal.poll() is None, (terminal.communicate()[1], events(folder)[-1:])
            assert time.monotonic() < deadline, events(folder)[-1]
            time.sleep(0.05)
        pid = next(e["pid"] for e in events(folder) if e["type"] == "run.started")
        os.kill(pid, signal.SIGKILL)
    finally:
        terminal.kill()
        terminal.communicate()


@pytest.mark.deep
def test_stand_in_a_swap_killed_in_the_middle_is_resumed_and_ends_right(
    cluster: KubeCluster, tmp_path: Path
) -> None:
    """The dead node is out with owner and reason, the standby carries its rank, steps go on."""
    backend, job = the_backend(tmp_path)
    assert not asyncio.run(backend.start_job(job, "", "first")).failed
    cluster.power_off("n3")
    planned = subprocess.run(
        command(tmp_path, "play", "plan", "swap-and-resume", "--set", "suspects=n3",
                "--set", "job=demo"),
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "schedulable -> cordoned" in planned
    assert "s1               standby -> reserved" in planned
    killed_while_it_restarts(tmp_path)
    arguments = ("play", "resume", "R-0001", "--confirm", "swap 1")
    resumed = subprocess.run(
        command(tmp_path, *arguments), capture_output=True, text=True, check=False
    )
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    check_end_state(cluster, tmp_path)


def check_end_state(cluster: KubeCluster, folder: Path) -> None:
    dead, standby = cluster.node("n3"), cluster.node("s1")
    assert dead["spec"]["unschedulable"] is True
    assert dead["metadata"]["annotations"]["brctl.dev/cordoned-by"] == "brctl:R-0001"
    assert "brctl.dev/job" not in dead["metadata"]["labels"]
    assert "brctl.dev/reserved" not in standby["metadata"]["labels"]
    pods = [p for p in cluster.pods() if "deletionTimestamp" not in p["metadata"]]
    assert {p["spec"]["nodeName"] for p in pods} == {"n1", "n2", "s1"}
    assert {p["metadata"]["annotations"]["brctl.dev/incarnation"] for p in pods} == {"R-0001"}
    reported = str(folder / f"ckpt/step-{STEP:08d}")
    for rank in range(3):
        progress = json.loads((folder / "progress" / f"rank-{rank:05d}.json").read_text())
        assert progress["told"] == reported
        assert progress["step"] > STEP
    assert events(folder)[-1]["type"] == "end"
