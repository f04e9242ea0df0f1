"""Ten faults found and fixed for real: does training pass the failing step on the same losses?

    python -m tests.bench.fixes [--only FAULT ...] [--nodes 4]

Each row is one `brctl lab demo`: a lab, a torch job, a fault, the verdict, the plan it proposes
with its `prove` step, which ends only beyond the step at which training stopped. Every step that
was trained twice is compared with what the step file said of it before, not only the first.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FAULTS = (
    "node-dead", "node-frozen", "link-cut", "gpu-ecc", "gpu-lost", "nvlink-down", "thermal",
    "rank-crash", "rank-hang", "loader-killed",
)  # fmt: skip
TIMEOUT_S = 600.0
LOOK_EVERY_S = 0.3


@dataclass(frozen=True, slots=True)
class Replayed:
    """Steps that were trained twice."""

    equal: int
    of: int


def replayed(lines: Sequence[str]) -> Replayed:
    """Compare the losses of steps that the file tells of more than once.

    Examples:
        >>> replayed(['{"step": 1, "loss": 2.5}', '{"step": 1, "loss": 2.5}', 'torn {'])
        Replayed(equal=1, of=1)
    """
    by_step: dict[int, list[object]] = {}
    for line in lines:
        try:
            told = json.loads(line)
            by_step.setdefault(told["step"], []).append(told["loss"])
        except (ValueError, KeyError, TypeError):
            continue
    twice = [losses for losses in by_step.values() if len(losses) > 1]
    return Replayed(sum(len(set(map(repr, losses))) == 1 for losses in twice), len(twice))


def play(fault: str, nodes: int) -> tuple[Mapping[str, object], Replayed]:
    """One demo: its document, and the steps it trained twice, read while the lab still stands."""
    with tempfile.TemporaryDirectory() as home:
        lab = Path(home) / "lab"
        steps = lab / "job" / "progress" / "steps.ndjson"
        command = [sys.executable, "-m", "brctl", "lab", "demo", "--fault", fault]
        command += ["--nodes", str(nodes), "--standbys", "1", "-o", "json"]
        environment = {**os.environ, "BRCTL_LAB_DIR": str(lab)}
        lines: list[str] = []
        deadline = time.monotonic() + TIMEOUT_S
        with (Path(home) / "document").open("w+") as document:
            demo = subprocess.Popen(command, env=environment, stdout=document, stderr=sys.stderr)
            while demo.poll() is None:
                if time.monotonic() > deadline:
                    demo.terminate()
                lines = steps.read_text().splitlines() if steps.exists() else lines
                time.sleep(LOOK_EVERY_S)
            document.seek(0)
            found: Mapping[str, object] = json.loads(document.read() or "{}")
        return found, replayed(lines)


def row(fault: str, found: Mapping[str, object], twice: Replayed) -> str:
    verdict, plan, seconds = (found.get(key) or {} for key in ("verdict", "plan", "seconds"))
    assert isinstance(verdict, dict)
    assert isinstance(plan, dict)
    assert isinstance(seconds, dict)
    named = "right" if found.get("named_right") else "WRONG"
    passed = "passed" if found.get("trained_on") else "NOT PASSED"
    return (
        f"{fault:14} {verdict.get('class', '-'):20} {named:6} {plan.get('playbook') or '-':18}"
        f" {plan.get('result') or '-':12} {passed} step {found.get('old_step')}, losses"
        f" {twice.equal}/{twice.of} equal, {sum(seconds.values()):.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=FAULTS)
    parser.add_argument("--nodes", type=int, default=4)
    options = parser.parse_args()
    equal = of = 0
    for fault in options.only:
        found, twice = play(fault, options.nodes)
        equal, of = equal + twice.equal, of + twice.of
        sys.stdout.write(row(fault, found, twice) + "\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(options.only)} fixes, {equal} of {of} replayed losses equal\n")


if __name__ == "__main__":
    main()
