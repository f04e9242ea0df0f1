"""CPU on a node that is watched, and on one that is polled: `python -m tests.bench.watch_node`.

A lab's node with eight fake GPUs and a rank; what a real driver takes for the same questions is not
in it. The held program counts itself. Polling is a fresh login for each round as often, with one of
its checks, so at least that: the CPU of the node's SSH server and of what it started.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from brctl.watch.rules import ROUNDS
from tests.bench.watched_lab import WatchedLab

GOAL_PERCENT = 0.5
PERIOD_S = 120.0
LOGINS = 10
_TICK = os.sysconf("SC_CLK_TCK")


def measure() -> bool:
    """Print both; whether the goal is met."""
    with tempfile.TemporaryDirectory() as folder:
        lab = WatchedLab(Path(folder), 1, standbys=0)
        with lab.training():
            polled = sum(_poll(lab, names[0]) / every_s for every_s, names in ROUNDS.items())
            with lab.watched():
                time.sleep(PERIOD_S)
                watched = lab.status().get("cpu_percent_a_node")
    if not isinstance(watched, int | float):
        raise SystemExit("watch_node: the watcher does not say what its looks cost")
    print(f"a node, of a core: watched {watched:.2f} % (goal {GOAL_PERCENT:g}),", end=" ")
    print(f"polled as often over fresh logins at least {100 * polled:.1f} %", flush=True)
    return watched <= GOAL_PERCENT


def _poll(lab: WatchedLab, check: str) -> float:
    """CPU seconds on the node for one look over a login of its own."""
    before = _server_cpu_s(lab)
    for _ in range(LOGINS):
        lab.brctl("sweep", "--checks", check)
    return (_server_cpu_s(lab) - before) / LOGINS


def _server_cpu_s(lab: WatchedLab) -> float:
    """Of the processes of the node's server and the children they have collected."""
    words = ["pgrep", "-f", f"lab.node_server {lab.folder}"]
    found = subprocess.run(words, capture_output=True, text=True, check=True)
    ticks = 0
    for pid in found.stdout.split():
        with suppress(FileNotFoundError, ProcessLookupError):  # a login that ended meanwhile
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, stat[11:15]))
    return ticks / _TICK


def main() -> int:
    """Measure."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    return int(not measure())


if __name__ == "__main__":
    sys.exit(main())
