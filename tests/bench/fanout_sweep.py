"""A level-1 sweep, all probes in one round trip a node: cold, and through the connection broker.

python -m tests.bench.fanout_sweep --size 256

What each way pays is shown apart: start-up (a sweep of one host), and for every further host what
judging its answer costs, which no transport saves, and what reaching it costs.

With `--canned` the hosts say what this machine's probes said once, instead of all running them on
the controller's own CPUs, which takes its caches away: nearer to a fleet of machines of their own.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench.fanout_broker import broker_cpu_s, broker_pid
from tests.bench.fanout_site import SAY, Fleet, enter_namespaces, open_fleet
from tests.bench.fanout_tools import write_config

IN_FLIGHT = 8
"""The probes of all hosts run on this machine: more at once would reach their deadlines."""

_ARGUMENTS = ("sweep", "--exit-zero", "-f", str(IN_FLIGHT), "--json")


_JUDGING = """
import os, sys, time
from dataclasses import replace
import brctl.fanout.choose as choose
from brctl.fanout.local import LocalTransport
class Replay:
    answer = None
    async def run(self, node, command):
        if Replay.answer is None:
            Replay.answer = await LocalTransport().run(node, command)
            Replay.began = time.process_time()
            open("canned", "wb").write(Replay.answer.stdout)
        return replace(Replay.answer, node=node.name)
    async def close(self): ...
choose.open_transport = lambda *_, **__: Replay()
from brctl.cli.main import run
run(sys.argv[1:])
print(time.process_time() - Replay.began, file=sys.stderr)
"""
"""A sweep whose nodes all answer what this machine's probes say, at once."""


@dataclass(frozen=True)
class SweepTiming:
    """One sweep: what it cost, and whether all nodes were asked."""

    wall_s: float
    client_s: float
    broker_s: float
    peak_mb: float
    answered: int
    in_time: int

    @property
    def cpu_s(self) -> float:
        return self.client_s + self.broker_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--canned", action="store_true", help="hosts run no probes")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    enter_namespaces([sys.executable, "-m", "tests.bench.fanout_sweep", *sys.argv[1:]])
    with tempfile.TemporaryDirectory(prefix="brctl-bench-") as name:
        try:
            with open_fleet(Path(name), options.size) as fleet:
                measure_sweeps(fleet, options.repeats, canned=options.canned)
        finally:
            subprocess.run(["umount", "/etc/passwd"], check=False)


def measure_sweeps(fleet: Fleet, repeats: int = 1, *, canned: bool = False) -> None:
    """Print one line a way, the ways interleaved; the probes' CPU is the nodes' and not counted."""
    os.environ["XDG_RUNTIME_DIR"] = f"{fleet.folder}/run"
    hostfile = fleet.folder / f"hosts-{len(fleet.hosts)}"
    hostfile.write_text("\n".join(fleet.hosts) + "\n")
    ways = {
        "cold": write_config(fleet.folder, hostfile, "asyncssh"),
        "through broker": write_config(fleet.folder, hostfile, "broker"),
    }
    judging_s = _judging_s(ways["cold"], fleet)
    if canned:
        _can(fleet, hostfile)
    try:
        _brctl(ways["through broker"], ["run", "-w", "@all", "--", f"echo {SAY}"], fleet)
        one = ["-w", fleet.hosts[0]]
        for config in ways.values():  # files read once, bytecode and cache written
            _sweep(config, fleet, one)
        started = {way: [_sweep(config, fleet, one) for _ in range(3)]
                   for way, config in ways.items()}  # fmt: skip
        full: dict[str, list[SweepTiming]] = {way: [] for way in ways}
        for _ in range(repeats):
            for way, config in ways.items():
                full[way].append(_sweep(config, fleet, []))
        _report(fleet, started, full, judging_s)
    finally:
        pid = broker_pid(fleet)
        if pid:
            os.kill(pid, 15)


def _report(
    fleet: Fleet,
    started: dict[str, list[SweepTiming]],
    full: dict[str, list[SweepTiming]],
    judging_s: float,
) -> None:
    count = len(fleet.hosts)
    judging_ms = 1000 * judging_s / count
    print(f"\nlevel-1 sweep of {count} hosts, {IN_FLIGHT} at once; CPU seconds are medians")
    head = ("wall s", "client s", "broker s", "sum s", "start-up s", "judging ms", "reaching ms",
            "peak MB", "answered", "in time")  # fmt: skip
    print(f"{'way':<16}" + "".join(f"{cell:>12}" for cell in head))
    for way, sweeps in full.items():
        cpu_s = statistics.median(sweep.cpu_s for sweep in sweeps)
        start_s = statistics.median(sweep.cpu_s for sweep in started[way])
        reaching_ms = 1000 * (cpu_s - start_s) / max(1, count - 1) - judging_ms
        worst = min(sweeps, key=lambda sweep: sweep.in_time)
        cells = (f"{statistics.median(s.wall_s for s in sweeps):.2f}",
                 f"{statistics.median(s.client_s for s in sweeps):.2f}",
                 f"{statistics.median(s.broker_s for s in sweeps):.2f}",
                 f"{cpu_s:.2f}", f"{start_s:.2f}", f"{judging_ms:.2f}", f"{reaching_ms:.2f}",
                 f"{max(s.peak_mb for s in sweeps):.0f}", f"{worst.answered}/{count}",
                 str(worst.in_time))  # fmt: skip
        print(f"{way:<16}" + "".join(f"{cell:>12}" for cell in cells), flush=True)


def _sweep(config: Path, fleet: Fleet, nodes: list[str]) -> SweepTiming:
    before_s, started = broker_cpu_s(fleet), time.perf_counter()
    client_s, peak_mb = _brctl(config, [*_ARGUMENTS, *nodes], fleet)
    wall_s = time.perf_counter() - started
    found = json.loads((fleet.folder / "output").read_text())["nodes"]
    answered = [node for node in found if node["outcome"] == "answered"]
    late = [n for n in answered if any("deadline" in gap["why"] for gap in n["not_checked"])]
    broker_s = broker_cpu_s(fleet) - before_s
    count = len(answered)
    return SweepTiming(wall_s, client_s, broker_s, peak_mb, count, count - len(late))


def _can(fleet: Fleet, hostfile: Path) -> None:
    """Put a program that repeats an answer in the place of the hosts' Python."""
    program = fleet.folder / "canned.sh"
    program.write_text(f"#!/bin/sh\ncat > /dev/null\nexec cat {fleet.folder}/canned\n")
    program.chmod(0o755)
    inventory = hostfile.with_name(f"{hostfile.name}.inventory")
    text = inventory.read_text()
    inventory.write_text(text.replace("python: /usr/bin/python3", f"python: {program}"))


def _judging_s(config: Path, fleet: Fleet) -> float:
    """CPU from the first answer to the end of the command when every answer is there at once."""
    done = subprocess.run(
        [sys.executable, "-c", _JUDGING, "--config", str(config), *_ARGUMENTS],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, cwd=fleet.folder,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    return float(done.stderr.splitlines()[-1])


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


if __name__ == "__main__":
    main()
