"""Power off every parallel group of a real job in turn: which step does it resume from?

    python -m tests.bench.evictions [--only tp pp dp]

A lab of eight nodes, tensor 2, pipeline 2, data 2, every step kept in memory; the nodes of a group
lose power together, `brctl swap` puts standbys in their place. Then the losses of all steps are
compared with those of a run of the same ranks that nothing happened to, bit by bit. Last, what the
rule of others, copies on the next machine, would have lost. Needs root.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brctl.training.checkpoints.layout import Layout
from brctl.training.checkpoints.placement import count_losses, next_machine, place_backups

AXES = (("tp", 2), ("pp", 2), ("dp", 2))
NODES, JOB = 8, "lab-train"
APART_STEPS = 5
WAIT_S = 300.0
A_LAB = 8
"""Groups of two nodes: `swap-and-resume` takes sixteen nodes in six hours, whoever asks."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """One group that lost power.

    Attributes:
        died_at: The last step before.
        resumed_at: The step that training went on from.
        seconds: Of the swap, until steps came again.
    """

    axis: str
    nodes: tuple[str, ...]
    died_at: int
    resumed_at: int
    seconds: float


@dataclass
class Lab:
    """The lab and its job."""

    folder: Path

    def brctl(self, *words: str) -> Any:
        """The document of one command, which has to end well."""
        environment = {**os.environ, "BRCTL_LAB_DIR": str(self.folder)}
        argv = [sys.executable, "-m", "brctl", "-o", "json", *words]
        done = subprocess.run(
            argv, env=environment, capture_output=True, text=True, timeout=2 * WAIT_S, check=False
        )
        if done.returncode:
            said = done.stdout + done.stderr
            raise SystemExit(f"{' '.join(words)}: exit {done.returncode}\n{said}")
        return json.loads(done.stdout or "{}")

    def on_site(self, *words: str) -> Any:
        return self.brctl("--context", "lab", *words)

    def may_lose(self, nodes: int) -> None:
        """A site's limit for a day, which is no part of what is measured."""
        document = {"apiVersion": "brctl.dev/v1", "kind": "Guards"}
        limits = {"blast_radius": {"max_nodes": nodes, "max_percent": 100}}
        (self.folder / "guards.yaml").write_text(json.dumps({**document, **limits}))

    def losses(self) -> dict[int, set[str]]:
        """Every loss that was written for a step, exactly as it was."""
        path = self.folder / "job" / "progress" / "steps.ndjson"
        return read_losses(path.read_text() if path.exists() else "")

    def wait_for(self, step: int) -> int:
        until = time.monotonic() + WAIT_S
        while (last := max(self.losses(), default=0)) < step:
            if time.monotonic() > until:
                raise SystemExit(f"no step {step} within {WAIT_S:g} s")
            time.sleep(0.2)
        return last


def read_losses(text: str) -> dict[int, set[str]]:
    r"""Losses by step; the last line may be torn.

    Examples:
        >>> read_losses('{"step": 1, "loss": 2.5}\n{"st')
        {1: {'2.5'}}
    """
    found: dict[int, set[str]] = {}
    for line in text.splitlines():
        try:
            told = json.loads(line)
        except ValueError:
            continue
        found.setdefault(told["step"], set()).add(repr(told["loss"]))
    return found


@contextmanager
def lab_with(standbys: int) -> Iterator[Lab]:
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder) / "lab")
        lab.brctl("lab", "up", "--nodes", str(NODES), "--standbys", str(standbys), "--every-step")
        try:
            lab.may_lose(NODES + standbys)
            lab.on_site("job", "start", JOB)
            lab.wait_for(APART_STEPS)
            yield lab
        finally:
            lab.brctl("lab", "down")


def evict(lab: Lab, axis: str, ranks: tuple[int, ...]) -> Eviction:
    """Take the power of the nodes that carry these ranks now, and put standbys in their place."""
    now = lab.on_site("job", "show", JOB)["job"]["nodes"]
    nodes = tuple(now[rank] for rank in ranks)
    for node in nodes:
        lab.brctl("lab", "break", "node-dead", node)
    died_at, began = max(lab.losses()), time.monotonic()
    words = ("swap", ",".join(nodes), "-m", "bench", "--confirm", f"swap {len(nodes)}")
    run = lab.on_site(*words)
    seconds = time.monotonic() - began
    resumed = next(s["out"]["step"] for s in run["run"]["steps"] if s["id"] == "choose")
    lab.wait_for(max(died_at, resumed) + APART_STEPS)
    return Eviction(axis, nodes, died_at, resumed, seconds)


def axes_flag() -> str:
    """How the job of this bench is cut."""
    return "--axes=" + ",".join(f"{axis}={size}" for axis, size in AXES)


def undisturbed(steps: int, *flags: str) -> Mapping[int, set[str]]:
    """The losses of the same ranks on this machine, with nothing between them."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        argv = [sys.executable, "-m", "brctl.training", f"--steps={steps}", *flags]
        environment = {
            **os.environ, "WORLD_SIZE": str(NODES), "LOCAL_WORLD_SIZE": "1", "OMP_NUM_THREADS": "1",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29611", "GLOO_SOCKET_IFNAME": "lo",
            "BRCTL_PROGRESS_DIR": folder, "BRCTL_JOB": "undisturbed",
        }  # fmt: skip
        ranks = [
            subprocess.Popen(
                [*argv, "--pace=0"],
                env={**environment, "RANK": str(r), "BRCTL_SLOT_DIR": str(root / f"slots-{r}")},
                stderr=subprocess.DEVNULL,
            )
            for r in range(NODES)
        ]
        for rank in ranks:
            rank.wait(2 * WAIT_S)
        return read_losses((root / "steps.ndjson").read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    axes = [axis for axis, _ in AXES]
    parser.add_argument("--only", nargs="+", choices=axes, default=axes)
    options = parser.parse_args()
    layout = Layout(AXES, 1)
    chosen = [(axis, group) for axis in options.only for group in _groups(layout, axis)]
    observed: list[dict[int, set[str]]] = []
    for first in range(0, len(chosen), A_LAB):
        part = chosen[first : first + A_LAB]
        with lab_with(sum(len(group) for _, group in part)) as lab:
            for axis, group in part:
                say(row(evict(lab, axis, group)))
            observed.append(lab.losses())
    expected = undisturbed(max(map(max, observed)), axes_flag())
    equal = sum(losses == expected.get(s) for seen in observed for s, losses in seen.items())
    steps = sum(map(len, observed))
    say(f"losses: {equal} of {steps} steps bit by bit those of an undisturbed run")
    for rule, backups in (
        ("ours", place_backups(layout).backups), ("next machine", next_machine(layout)),
    ):  # fmt: skip
        lost = ", ".join(f"{x.kind} {x.lost}/{x.groups}" for x in count_losses(layout, backups))
        say(f"groups that lose a shard, {rule}: {lost}")


def _groups(layout: Layout, axis: str) -> list[tuple[int, ...]]:
    members: dict[tuple[int, ...], list[int]] = {}
    for rank in range(layout.world_size):
        rest = tuple(i for name, i in layout.coordinates(rank).items() if name != axis)
        members.setdefault(rest, []).append(rank)
    return [tuple(ranks) for ranks in members.values()]


def row(eviction: Eviction) -> str:
    """One line of the table."""
    lost = eviction.died_at - eviction.resumed_at
    return (
        f"{eviction.axis} {','.join(eviction.nodes):9} died at {eviction.died_at:5}, resumed at"
        f" {eviction.resumed_at:5}, {max(0, lost)} steps lost, swap {eviction.seconds:.0f} s"
    )


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
