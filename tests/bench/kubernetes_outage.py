"""A swap on Kubernetes while the API server is stopped for a while, once in each of its steps.

    python -m tests.bench.kubernetes_outage [--seconds 20] [--steps stop,swap]

The real kubectl and the stand-in of `tests/fakes/kube`, whose server really closes its port. Needs
torch, as `tests.bench.kubernetes` does. Exit 1 when a run ended with its job suspended and nobody
told: neither ok, nor rolled back with the job running, nor `needs_human`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from tests.bench.kubernetes import add_job, save_checkpoint, site
from tests.fakes.kube.cluster import NAMESPACE, KubeCluster, kube_cluster
from tests.timeouts import TIMEOUT_S

SWAP = ("swap", "n3", "--job", "demo", "-m", "fan", "--confirm", "swap 1")
STEPS = tuple(s.id for s in load_playbook(shipped_dir("playbooks") / "swap-and-resume.yaml").steps)
TOLD = ("ok", "needs_human")


@dataclass(frozen=True)
class Ending:
    """How one run ended.

    Attributes:
        state: The run's own word; "" when it never began the step.
        suspended: Whether its job was left so.
    """

    step: str
    state: str
    suspended: bool
    seconds: float

    @property
    def sound(self) -> bool:
        return self.state in TOLD or (self.state == "rolled_back" and not self.suspended)


def swap_while_away(step: str, seconds: float) -> Ending:
    """Start a job, swap one of its nodes, and stop the API server when a step begins."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        environ = site(folder)
        save_checkpoint(folder)
        with kube_cluster(folder, ["n1", "n2", "n3", "s1"], ["s1"]) as cluster:
            environ["KUBECONFIG"] = os.environ["KUBECONFIG"]
            add_job(cluster, folder)
            _brctl(folder, environ, "job", "start", "demo").wait()
            began = time.perf_counter()
            swap = _brctl(folder, environ, *SWAP)
            _outage(cluster, folder, step, swap, seconds)
            swap.wait()
            job = cluster.store.get("jobs", NAMESPACE, "trainer")
            took = time.perf_counter() - began
            return Ending(step, _state(folder), bool(job["spec"].get("suspend")), took)


def _brctl(folder: Path, environ: dict[str, str], *words: str) -> "subprocess.Popen[bytes]":
    argv = [sys.executable, "-m", "brctl", *words, "--config", str(folder / "config.yaml")]
    return subprocess.Popen(
        [*argv, "--no-input"], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _outage(
    cluster: KubeCluster, folder: Path, step: str, swap: "subprocess.Popen[bytes]", seconds: float
) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not any(e["type"] == "step.intent" and e["step"] == step for e in _events(folder)):
        if swap.poll() is not None or time.monotonic() > deadline:
            return
        time.sleep(0.02)
    cluster.stop_api()
    time.sleep(seconds)
    cluster.start_api()


def _events(folder: Path) -> list[dict[str, str]]:
    """Of the second run: the first one started the job."""
    path = folder / "state" / "runs" / "R-0002" / "events.ndjson"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def _state(folder: Path) -> str:
    ends = [event for event in _events(folder) if event["type"] == "end"]
    return ends[-1].get("result", "") if ends else ""


def main() -> None:
    """One row a step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--steps", default=",".join(STEPS))
    chosen = parser.parse_args()
    sound = True
    for step in chosen.steps.split(","):
        ending = swap_while_away(step, chosen.seconds)
        sound &= ending.sound
        job = "suspended" if ending.suspended else "running"
        word = "sound" if ending.sound else "NOT SOUND"
        sys.stdout.write(
            f"{step:9} {ending.state:12} job {job:9} {ending.seconds:6.1f} s  {word}\n"
        )
        sys.stdout.flush()
    raise SystemExit(not sound)


if __name__ == "__main__":
    main()
