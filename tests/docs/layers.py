"""The picture of the layers, drawn from the contract that import-linter holds the code to."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
WIDTH = 42

ABOUT: Mapping[str, str] = {
    "cli": "one word, one call below, one page, one exit code",
    "tui": "reads state, asks the engine; decides nothing",
    "lab": "a cluster on this machine; a made-up fleet in simulated time",
    "engine": "wires the stages; the only one that reads the clock",
    "actions": "one module a verb: look, plan, act, undo, confirm",
    "sweep": "checks times nodes, streamed; who schedules the nodes",
    "fanout": "reach nodes; who is there; what was done; whom to tell",
    "library": "checks, playbooks and configuration, read strictly",
    "view": "pure: words, tables, documents",
    "watch": "pure: suspicions over time, and the gates before an action",
    "evidence": "pure: what answers mean, what is broken, what to do",
    "model": "pure: the nouns",
}
"""One line a layer, by the first of its packages."""

BELOW = """\
          |
          |  SSH, srun, kubectl exec: probes go in on stdin, measurements come back
          v
   nodes: checks/*/*/probe.py, and inside the job brctl.training, which stands apart
"""


def layers() -> list[list[str]]:
    """Packages of each layer, the highest first."""
    contracts = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]
    found = next(row for row in contracts["contracts"] if row["type"] == "layers")
    return [[name.strip() for name in layer.split("|")] for layer in found["layers"]]


def picture() -> str:
    """Boxes, one below the other: each may import what is below it, nothing beside or above it."""
    edge = "+" + "-" * WIDTH + "+"
    rows = [line for names in layers() for line in (_row(names), edge)]
    return "\n".join(["```", edge, *rows, BELOW.rstrip("\n"), "```"])


def _row(names: Sequence[str]) -> str:
    return f"| {' | '.join(names):<{WIDTH - 2}} |  {ABOUT[names[0]]}"
