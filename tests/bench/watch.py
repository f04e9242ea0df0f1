"""Seconds from a fault to a suspicion, a verdict, a decision and the first new step, watched.

    python -m tests.bench.watch [--fault gpu-lost ...] [--nodes 3]

Each fault in a lab of its own, with a watcher that may act and two standbys; beside it what
ByteRobust's Table 3 gives for the kind of fault, and what a sweep by cron each minute would take:
half a minute on average until it starts, and the time of one sweep, measured in the same lab.
CPU is that of the program on a node, as it counts itself, as a share of one core.
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
from datetime import datetime
from pathlib import Path

PAPER_S: Mapping[str, float] = {
    "gpu-lost": 10, "gpu-ecc": 10, "node-dead": 60, "rank-nan": 10, "rank-crash": 10,
    "rank-hang": 600,
}  # fmt: skip
"""Seconds to detect, arXiv 2509.16293, Table 3: intervals of 2, 10 and 30 s; two for a node."""

CRON_S = 60.0
SETTLES_S, DEADLINE_S = 20.0, 150.0
POLICY = """\
apiVersion: brctl.dev/v1
kind: WatchPolicy
mode: act
limits: {start_up: 1s, spares_kept: 0}
"""


class WatchedLab:
    """A lab with its job, and a watcher beside it."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder, self._nodes = folder / "lab", nodes
        self._policy = folder / "watch.yaml"
        self._policy.write_text(POLICY)
        self._policy.chmod(0o600)

    def brctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        config = self.folder / "config.yaml"
        at = ["--config", str(config)] if config.exists() and words[0] != "lab" else []
        return subprocess.run(
            [sys.executable, "-m", "brctl", *at, *words], env=self._environment,
            capture_output=True, text=True, check=False, timeout=DEADLINE_S,
        )  # fmt: skip

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "BRCTL_LAB_DIR": str(self.folder)}

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Up, training and watched."""
        up = self.brctl("lab", "up", "--nodes", str(self._nodes), "--isolation", "none")
        watcher: subprocess.Popen[bytes] | None = None
        try:
            if up.returncode:
                raise RuntimeError(up.stderr[-400:])
            self.brctl("job", "start", "lab-train")
            watcher = subprocess.Popen(
                [sys.executable, "-m", "brctl", "--config", str(self.folder / "config.yaml"),
                 "watch", "--job", "lab-train", "--mode", "act", "--policy", str(self._policy)],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self._environment,
            )  # fmt: skip
            until(lambda: self.status().get("talking") == self._nodes, DEADLINE_S)
            time.sleep(SETTLES_S)
            yield
        finally:
            try:
                if watcher is not None:
                    watcher.terminate()
                    watcher.wait(30)
            finally:
                self.brctl("lab", "down")

    def status(self) -> Mapping[str, object]:
        return self._json("watch", "status", "--lines", "1000")

    def step(self) -> int | None:
        """The job's newest step while it goes on; None while it does not."""
        body = self._json("job", "show")
        return None if body.get("stalled") else int(str(body.get("step") or 0))

    def _json(self, *words: str) -> Mapping[str, object]:
        done = self.brctl(*words, "-o", "json")
        try:
            found = json.loads(done.stdout)
        except ValueError:
            return {}
        return dict(found.get("job", found)) if words[0] == "job" else dict(found)


def until(what: Callable[[], object], limit_s: float) -> bool:
    """Whether it came to be within the time."""
    give_up = time.monotonic() + limit_s
    while time.monotonic() < give_up:
        if what():
            return True
        time.sleep(0.5)
    return False


def measure(fault: str, nodes: int) -> Mapping[str, object]:
    """One fault in a lab of its own."""
    with tempfile.TemporaryDirectory() as folder:
        lab = WatchedLab(Path(folder), nodes)
        with lab.watched():
            began = time.monotonic()
            lab.brctl("sweep")
            sweep_s, cpu = time.monotonic() - began, lab.status().get("cpu_percent_a_node")
            broke_at = time.time()
            lab.brctl("lab", "break", fault, "n2")
            until(lambda: "decision" in moments(lab.status(), broke_at), DEADLINE_S)
            found = moments(lab.status(), broke_at)
            came = until(lambda: _goes_on(lab), 60.0) if "decision" in found else False
            first = {"new step": time.time() - broke_at} if came else {}
        return {"fault": fault, **found, **first, "cron": CRON_S / 2 + sweep_s, "cpu": cpu}


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


def _cell(value: object) -> str:
    return f"{value:>11.2f}" if isinstance(value, int | float) else f"{'-':>11}"


def main() -> int:
    """Measure each fault and print a line as it comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fault", nargs="*", default=list(PAPER_S))
    parser.add_argument("--nodes", type=int, default=3)
    chosen = parser.parse_args()
    columns = ("suspicion", "verdict", "decision", "new step", "cron")
    head = "".join(f"{name:>11}" for name in (*columns, "paper", "CPU %"))
    sys.stdout.write(f"{'fault':<12}{head}\n")
    slow = False
    for fault in chosen.fault:
        row = measure(fault, chosen.nodes)
        cells = [row.get(name) for name in columns]
        values = [*cells, PAPER_S.get(fault), row.get("cpu")]
        text = "".join(
            f"{v:>11.2f}" if isinstance(v, int | float) else f"{'-':>11}" for v in values
        )
        sys.stdout.write(f"{fault:<12}{text}\n")
        sys.stdout.flush()
        seen = row.get("suspicion")
        slow |= not isinstance(seen, float) or seen > PAPER_S.get(fault, 60.0)
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
