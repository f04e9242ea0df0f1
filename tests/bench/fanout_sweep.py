"""A level-1 sweep, all probes in one round trip a node: cold, and through the connection broker."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.fanout_broker import broker_cpu_s, broker_pid
from tests.bench.fanout_site import SAY, Fleet
from tests.bench.fanout_tools import write_config

IN_FLIGHT = 8
"""The probes of all hosts run on this machine: more at once would reach their deadlines."""


def measure_sweeps(fleet: Fleet) -> None:
    """Print one line a way; CPU is the client's and the broker's, the probes' is the nodes'."""
    os.environ["XDG_RUNTIME_DIR"] = f"{fleet.folder}/run"
    hostfile = fleet.folder / f"hosts-{len(fleet.hosts)}"
    hostfile.write_text("\n".join(fleet.hosts) + "\n")
    print(f"\nlevel-1 sweep of {len(fleet.hosts)} hosts, {IN_FLIGHT} at once")
    print(f"{'way':<18}{'wall s':>10}{'CPU s':>10}{'ms/host':>10}{'broker s':>10}{'peak MB':>10}"
          f"{'answered':>12}{'in time':>10}")  # fmt: skip
    cold, broker = (write_config(fleet.folder, hostfile, way) for way in ("asyncssh", "broker"))
    try:
        _measure("cold", cold, fleet)
        _brctl(broker, ["run", "-w", "@all", "--lines", "--", f"echo {SAY}"], fleet)
        _measure("through broker", broker, fleet)
    finally:
        pid = broker_pid(fleet)
        if pid:
            os.kill(pid, 15)


def _measure(title: str, config: Path, fleet: Fleet) -> None:
    before_s, started = broker_cpu_s(fleet), time.perf_counter()
    argv = ["sweep", "--exit-zero", "-f", str(IN_FLIGHT), "--json"]
    cpu_s, peak_mb = _brctl(config, argv, fleet)
    wall_s, broker_s = time.perf_counter() - started, broker_cpu_s(fleet) - before_s
    nodes = json.loads((fleet.folder / "output").read_text())["nodes"]
    answered = [node for node in nodes if node["outcome"] == "answered"]
    late = [n for n in answered if any("deadline" in gap["why"] for gap in n["not_checked"])]
    count = len(fleet.hosts)
    print(f"{title:<18}{wall_s:>10.2f}{cpu_s:>10.2f}{1000 * cpu_s / count:>10.1f}{broker_s:>10.2f}"
          f"{peak_mb:>10.0f}{f'{len(answered)}/{count}':>12}{len(answered) - len(late):>10}",
          flush=True)  # fmt: skip


def _brctl(config: Path, argv: list[str], fleet: Fleet) -> tuple[float, float]:
    """CPU and peak memory of one command; what it printed is in the folder's `output`."""
    with (fleet.folder / "output").open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "brctl", "--config", str(config), *argv],
            stdin=subprocess.DEVNULL, stdout=stream,
        )  # fmt: skip
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
