"""What is left when a sweep, a fix or a playbook's run is killed at any moment.

    python -m tests.bench.kills [KILLS] [--seed N] [--only sweep,fix,play]

SIGKILL at moments drawn from the seed, then: is every file readable, is every run listed as what it
is, does it resume to the end it would have had, was everything done once, does nothing dead hold
anybody up. Processes, files and locks are real; the cluster of `fix` and `play` is one in a file.
Exit 1 when anything was not consistent.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.bench.kills.moments import Tally
from tests.bench.kills.runs import kill_runs
from tests.bench.kills.sweeps import kill_sweeps

KILLS, SEED = 200, 14


def main(arguments: list[str]) -> int:
    """Print a line a kind."""
    parser = argparse.ArgumentParser(description="What kills at any moment leave behind.")
    parser.add_argument("kills", nargs="?", type=int, default=KILLS, help="of each kind; 200")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", default="sweep,fix,play")
    asked = parser.parse_args(arguments)
    print(f"{'command':8} {'kills':>6} {'missed':>7} {'parts left':>11} {'inconsistencies':>16}")
    problems = 0
    for name in asked.only.split(","):
        with tempfile.TemporaryDirectory(prefix="brctl-kills-") as folder:
            tally = kills_of(name, Path(folder), asked.kills, asked.seed)
        problems += len(tally.problems)
        print(
            f"{name:8} {tally.kills:6} {tally.missed:7} {tally.parts:11} {len(tally.problems):16}",
            flush=True,
        )
        print("".join(f"  {problem}\n" for problem in tally.problems[:20]), end="", flush=True)
    return 1 if problems else 0


def kills_of(name: str, folder: Path, kills: int, seed: int) -> Tally:
    """Kill one command so often; what it left."""
    if name == "sweep":
        return kill_sweeps(folder, kills, seed)
    return kill_runs(name, folder, kills, seed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
