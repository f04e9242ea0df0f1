"""Seconds from a fault to a suspicion, a verdict, a decision and the first new step, watched.

    python -m tests.bench.watch [--fault gpu-lost ...] [--nodes 3]

Each fault in a lab of its own, with a watcher that may act and two standbys; beside it what
ByteRobust's Table 3 gives for the kind of fault, and what a sweep by cron each minute would take:
half a minute on average until it starts, and the time of one sweep, measured in the same lab.
Then what watching costs (`--fault` alone leaves that out): a node with eight GPUs and a rank, and
polling it over fresh logins; a controller of 1,000 nodes, as by `tests.bench.watch_fleet`.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from brctl.lab.faults import FAULTS
from tests.bench import watch_node
from tests.bench.watched_lab import DEADLINE_S, WatchedLab, until

PAPER_S: Mapping[str, float] = {
    "gpu-lost": 10, "gpu-ecc": 2, "row-remap-failure": 10, "pcie-degraded": 10, "thermal": 10,
    "nvlink-down": 10, "rank-nan": 10, "nan-code": 10, "bad-batch": 10, "loss-jump": 10,
    "rank-crash": 10, "node-dead": 60, "node-frozen": 60, "ssh-refused": 60, "link-cut": 60,
    "link-slow": 30,
}  # fmt: skip
"""Seconds to detect, arXiv 2509.16293, Table 3 and section 4.1: kernel log 2, GPU and job 10,
network 30, two looks for a node. It has no figure for what is not here."""

SLOWEST_S = 60.0
"""For a fault without a figure of the paper: where it waits for silence, the watcher need not."""

CRON_S = 60.0


def _without_privileges() -> list[str]:
    return [fault.name for fault in FAULTS.values() if not fault.needs_netns]


def measure(fault: str, nodes: int) -> Mapping[str, object]:
    """One fault in a lab of its own."""
    with tempfile.TemporaryDirectory() as folder:
        lab = WatchedLab(Path(folder), nodes, netns=FAULTS[fault].needs_netns)
        with lab.training(), lab.watched():
            began = time.monotonic()
            lab.brctl("sweep")
            sweep_s = time.monotonic() - began
            broke_at = time.time()
            lab.done("lab", "break", fault, "n2")
            until(lambda: "decision" in moments(lab.status(), broke_at), DEADLINE_S)
            found = moments(lab.status(), broke_at)
            came = until(lambda: _goes_on(lab), 60.0) if "decision" in found else False
            first = {"new step": time.time() - broke_at} if came else {}
        return {"fault": fault, **found, **first, "cron": CRON_S / 2 + sweep_s}


def _goes_on(lab: WatchedLab) -> bool:
    before = lab.step()
    time.sleep(1.0)
    after = lab.step()
    return before is not None and after is not None and after > before


def moments(status: Mapping[str, object], since: float) -> dict[str, float]:
    """When each kind of record came first, in seconds after the fault."""
    found: dict[str, float] = {}
    records = status.get("records")
    for record in records if isinstance(records, list) else []:
        seconds = datetime.fromisoformat(record["at"]).timestamp() - since
        if record["kind"] in ("suspicion", "verdict", "decision") and seconds > 0:
            found.setdefault(record["kind"], seconds)
    return found


def main() -> int:
    """Measure each fault and print a line as it comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fault", nargs="*")
    parser.add_argument("--nodes", type=int, default=3)
    chosen = parser.parse_args()
    columns = ("suspicion", "verdict", "decision", "new step", "cron")
    head = "".join(f"{name:>11}" for name in (*columns, "paper"))
    sys.stdout.write(f"{'fault':<12}{head}\n")
    slow = False
    for fault in chosen.fault if chosen.fault is not None else _without_privileges():
        row = measure(fault, chosen.nodes)
        cells = [row.get(name) for name in columns]
        values = [*cells, PAPER_S.get(fault)]
        text = "".join(
            f"{v:>11.2f}" if isinstance(v, int | float) else f"{'-':>11}" for v in values
        )
        sys.stdout.write(f"{fault:<12}{text}\n")
        sys.stdout.flush()
        seen = row.get("suspicion")
        slow |= not isinstance(seen, float) or seen > PAPER_S.get(fault, SLOWEST_S)
    if chosen.fault is None:
        slow |= not watch_node.measure()
        # A process of its own: it goes into namespaces.
        fleet = [sys.executable, "-m", "tests.bench.watch_fleet"]
        slow |= subprocess.run(fleet, check=False).returncode != 0
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
