"""Power a node off under a torch job on a real Slurm; `brctl dx` and `brctl fix` bring it back.

    python -m tests.bench.slurm_recovery --nodes 3

Needs root and Debian's slurmctld, slurmd and slurm-client. A lab of network namespaces is built,
each with its own SSH server and slurmd; the batch job is real, and so is the power-off. Seconds per
phase, the steps of the fix, what Slurm says of the node afterwards, and the losses of the steps
that were trained twice. Exit 0 only if the right node was named, drained and replaced, training
passed its old step, and those losses are equal bit by bit.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from brctl.lab.cluster import Lab
from brctl.lab.interrupts import signals_as_exceptions
from brctl.lab.spec import Isolation, LabSpec
from tests.fakes.slurm_lab import ask_slurm, missing, slurm_lab

WARM_STEPS = 14
"""Past the first checkpoint, with some steps to train twice."""
TIMEOUT_S = 180.0
STALL_AFTER_S = 6.0
"""A step takes 0.1 s; this long without one is a stall even on two busy cores."""

CRITICAL = 2


@dataclass
class Recovery:
    """What happened, in order.

    Attributes:
        drained: What Slurm says of the node afterwards: state and reason.
        losses: Loss before and after of every step that was trained twice, by step.
        seconds: Wall seconds by phase; `recovery` is from power-off to the step after the old one.
        steps: Wall seconds by step of the fix.
    """

    node: str
    named: list[str] = field(default_factory=list)
    run: str = ""
    run_state: str = ""
    drained: str = ""
    placed: str = ""
    old_step: int = -1
    new_step: int = -1
    losses: dict[int, tuple[float, float]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    steps: dict[str, float] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        """Every promise was kept."""
        owned = "drain" in self.drained and f"[brctl:{self.run}]" in self.drained
        equal = bool(self.losses) and all(a == b for a, b in self.losses.values())
        named = self.named == [self.node] and self.node not in self.placed.split(",")
        return (
            named and self.run_state == "ok" and owned and self.new_step > self.old_step and equal
        )


class Play:
    """One recovery on one lab."""

    def __init__(self, lab: Lab, node: str, say: Callable[[str], None]) -> None:
        self._lab, self._say = lab, say
        self.result = Recovery(node)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.result.seconds[name] = time.monotonic() - started
        self._say(f"{name:<10} {self.result.seconds[name]:6.1f} s")

    def play(self) -> Recovery:
        """Train, cut the power, look until the node is named, fix, train on."""
        with self.phase("start"):
            code, document = self.brctl("job", "start")
            if code != 0:
                raise SystemExit(f"job start: exit {code}: {json.dumps(document)}\n{self._scene()}")
            self._until(lambda: self.last_step() >= WARM_STEPS, f"step {WARM_STEPS}")
        self._lab.break_node("node-dead", self.result.node)
        with self.phase("recovery"):
            with self.phase("diagnose"):
                self._diagnose()
            self.result.old_step = self.last_step()
            with self.phase("fix"):
                self._fix()
            old = self.result.old_step
            self._until(lambda: self.last_step() > old, f"a step after {old}")
        self._look_at_the_end()
        return self.result

    def _diagnose(self) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            code, document = self.brctl("dx")
            if code == CRITICAL:
                self.result.named = document["verdict"]["suspects"]["nodes"]
                return
            if time.monotonic() > deadline:
                raise SystemExit(f"no verdict within {TIMEOUT_S:.0f} s: {document}")
            time.sleep(0.3)

    def _fix(self) -> None:
        _, document = self.brctl("fix", "--confirm", "swap 1")
        run = document["run"]
        self.result.run, self.result.run_state = run["id"], run["state"]
        self.result.steps = {step["id"]: step["seconds"] for step in run["steps"]}
        if run["state"] != "ok":
            self._say(json.dumps(run, indent=1))

    def _look_at_the_end(self) -> None:
        node = self.result.node
        cells = ask_slurm("sinfo", "-h", "-n", node, "-O", "StateLong:|,Reason:200").split("|", 1)
        self.result.drained = " ".join(cell.strip() for cell in cells)
        placed = ask_slurm("squeue", "-h", "-t", "RUNNING", "-O", "NodeList:200").strip()
        self.result.placed = ",".join(ask_slurm("scontrol", "show", "hostnames", placed).split())
        self.result.new_step = self.last_step()
        self.result.losses = self._losses()

    def brctl(self, *words: str) -> tuple[int, Mapping[str, Any]]:
        """Exit code and document of one brctl command, as a person would type it."""
        config = str(self._lab.paths.config)
        command = [sys.executable, "-m", "brctl", "--config", config, *words, "-o", "json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError:
            raise SystemExit(f"brctl {' '.join(words)}: {done.returncode}: {done.stderr}") from None

    def last_step(self) -> int:
        return max((int(row["step"]) for row in self._rows()), default=-1)

    def _losses(self) -> dict[int, tuple[float, float]]:
        first: dict[int, float] = {}
        twice: dict[int, tuple[float, float]] = {}
        for row in self._rows():
            if row["step"] in first:
                twice[row["step"]] = (first[row["step"]], row["loss"])
            first.setdefault(row["step"], row["loss"])
        return twice

    def _rows(self) -> list[dict[str, Any]]:
        """Rank 0's own account, which a restart continues; the last line may be half written."""
        path = self._lab.paths.work / "progress" / "steps.ndjson"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    def _scene(self) -> str:
        """What Slurm and the ranks said last, for whoever reads a failure."""
        jobs = ask_slurm("scontrol", "show", "job")
        logs = sorted(self._lab.paths.work.glob("**/*.log"))
        ends = [f"== {path.name}\n{path.read_text(errors='replace')[-600:]}" for path in logs]
        return "\n".join([jobs, *ends])

    def _until(self, happened: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not happened():
            if time.monotonic() > deadline:
                raise SystemExit(f"{what} did not come within {TIMEOUT_S:.0f} s\n{self._scene()}")
            time.sleep(0.1)


def recover(directory: Path, nodes: int, say: Callable[[str], None]) -> Recovery:
    """Build the site, play, take everything down whatever happened."""
    spec = LabSpec(
        nodes=nodes, standbys=1, gpus=2, isolation=Isolation.NETNS, stall_after_s=STALL_AFTER_S
    )
    started = time.monotonic()
    with slurm_lab(directory, spec) as lab:
        up_s = time.monotonic() - started
        say(f"{'up':<10} {up_s:6.1f} s   {nodes} nodes and a standby, slurmd and sshd in each")
        # Not the first node, whose rank writes the account and the checkpoints' metadata.
        result = Play(lab, f"n{nodes}", say).play()
    result.seconds["up"] = up_s
    return result


def report(result: Recovery) -> str:
    """The account for people."""
    steps = "  ".join(f"{name} {seconds:.1f}" for name, seconds in result.steps.items())
    equal = sum(a == b for a, b in result.losses.values())
    return "\n".join(
        [
            f"named      {','.join(result.named)} (powered off: {result.node})",
            f"fix        {result.run} {result.run_state}: {steps}",
            f"Slurm      {result.node}: {result.drained}; the job runs on {result.placed}",
            f"training   step {result.old_step} before, {result.new_step} now",
            f"losses     {equal} of {len(result.losses)} steps trained twice are equal bit by bit",
            "right" if result.right else "WRONG",
        ]
    )


def main() -> int:
    """Read the flags, play, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--directory", type=Path, help="where the lab lies; default a new one")
    parser.add_argument("--json", action="store_true", help="one document on stdout")
    options = parser.parse_args()
    why_not = missing()
    if why_not:
        raise SystemExit(f"slurm_recovery: {why_not}")
    with signals_as_exceptions(), tempfile.TemporaryDirectory(prefix="brctl-bench-") as folder:
        os.environ["HOME"] = folder
        where = options.directory or Path(folder) / "lab"
        result = recover(where, options.nodes, lambda line: print(line, file=sys.stderr))
    if options.json:
        print(json.dumps({**asdict(result), "right": result.right}))
    else:
        print(report(result))
    return 0 if result.right else 1


if __name__ == "__main__":
    sys.exit(main())
