"""What brctl's commands cost on Kubernetes: kubectl calls, seconds, seconds of their steps.

    python -m tests.bench.kubernetes [--calls]

The real kubectl talks to the stand-in of `tests/fakes/kube`, so seconds are those of processes and
of waiting, not of a network. Needs torch, for a checkpoint that a swap finds whole. `--calls` lists
what each command asked, and how often.
"""

import argparse
import collections
import json
import os
import re
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tests.fakes.kube.cluster import KubeCluster, kube_cluster
from tests.fakes.kube.site import write_site

TRAINER = """
import json, os, sys, time
folder, rank, step = sys.argv[1], int(os.environ["JOB_COMPLETION_INDEX"]), 0
while True:
    step += 1
    path = "%s/rank-%05d.json" % (folder, rank)
    with open(path + ".part", "w") as stream:
        json.dump({"rank": rank, "step": step, "at": time.time()}, stream)
    os.replace(path + ".part", path)
    time.sleep(0.1)
"""
COMMANDS = (
    ("ls",),
    ("cordon", "n3", "-m", "fan"),
    ("uncordon", "n3"),
    ("job", "start", "demo"),
    ("job", "show", "demo"),
    ("job", "stop", "demo", "--confirm", "stop"),
    ("job", "start", "demo"),
    ("swap", "n3", "--job", "demo", "-m", "fan", "--confirm", "swap 1"),
)
_SHOWN = re.compile(r"--request-timeout=\S+ |--validate=false |-f - ?|--context \S+ ")


@dataclass(frozen=True)
class Cost:
    """One command.

    Attributes:
        cpu_s: Seconds of all its processes, kubectl's too: what a busy machine cannot hide.
        steps_s: Seconds between intent and outcome of its steps; 0 for one without a run.
    """

    words: str
    exit_status: int
    seconds: float
    cpu_s: float
    steps_s: float
    calls: tuple[str, ...]


def site(folder: Path) -> dict[str, str]:
    """A site in this folder, and an environment in which each kubectl leaves a line in a file."""
    for name in ("ckpt", "logs", "progress", "bin"):
        (folder / name).mkdir()
    write_site(folder)
    real = shutil.which("kubectl")
    if real is None:
        raise SystemExit("not installed: kubectl")
    counted = folder / "bin" / "kubectl"
    counted.write_text(f'#!/bin/sh\necho "$*" >> {folder}/calls\nexec {real} "$@"\n')
    counted.chmod(counted.stat().st_mode | stat.S_IXUSR)
    return {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}


def measure(folder: Path, environ: dict[str, str], words: tuple[str, ...]) -> Cost:
    """Run one command and count."""
    log = folder / "calls"
    log.write_text("")
    before = _runs(folder)
    argv = [
        sys.executable,
        "-m",
        "brctl",
        *words,
        "--config",
        str(folder / "config.yaml"),
        "--no-input",
    ]
    started, cpu_before_s = time.perf_counter(), _children_cpu_s()
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode not in (0, 1):
        sys.stderr.write(done.stdout + done.stderr)
    steps_s = sum(map(_steps_s, _runs(folder) - before))
    calls = tuple(_SHOWN.sub("", line) for line in log.read_text().splitlines())
    cpu_s = _children_cpu_s() - cpu_before_s
    return Cost(" ".join(words), done.returncode, seconds, cpu_s, steps_s, calls)


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _runs(folder: Path) -> set[Path]:
    return set((folder / "state" / "runs").glob("*/events.ndjson"))


def _steps_s(path: Path) -> float:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    begun = {row["step"]: _moment(row) for row in rows if row["type"] == "step.intent"}
    ended = {row["step"]: _moment(row) for row in rows if row["type"] == "step.result"}
    return sum((ended[step] - at).total_seconds() for step, at in begun.items() if step in ended)


def _moment(row: dict[str, str]) -> datetime:
    return datetime.fromisoformat(row["ts"])


def main() -> None:
    """Measure every command once, in an order in which each finds what it needs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        environ = site(folder)
        save_checkpoint(folder)
        with kube_cluster(folder, ["n1", "n2", "n3", "s1"], ["s1"]) as cluster:
            environ["KUBECONFIG"] = os.environ["KUBECONFIG"]
            add_job(cluster, folder)
            for words in COMMANDS:
                _print(measure(folder, environ, words), calls=chosen.calls)


def save_checkpoint(folder: Path) -> None:
    """One that a swap finds whole."""
    import torch
    import torch.distributed.checkpoint as dcp

    where = folder / "ckpt" / "step-00000020"
    dcp.save({"w": torch.ones(8)}, checkpoint_id=where, no_dist=True)


def add_job(cluster: KubeCluster, folder: Path) -> None:
    """The job of the site, suspended, with ranks that write their steps."""
    command = [sys.executable, "-c", TRAINER, str(folder / "progress")]
    cluster.add_job("trainer", "demo", 3, command, hears=True)


def _print(cost: Cost, *, calls: bool) -> None:
    sys.stdout.write(
        f"exit {cost.exit_status}  {cost.seconds:5.1f} s  cpu {cost.cpu_s:4.1f} s"
        f"  steps {cost.steps_s:5.1f} s  {len(cost.calls):3} calls  {cost.words}\n"
    )
    if calls:
        for line, count in collections.Counter(cost.calls).most_common():
            sys.stdout.write(f"    {count:3} x {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
