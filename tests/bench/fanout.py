"""brctl beside clush, pdsh, parallel-ssh and Ansible on up to 1,000 hosts of one real sshd.

    python -m tests.bench.fanout --install /tmp/peers --sizes 16,64,256 --repeats 3
    python -m tests.bench.fanout --sizes 4096 --repeats 1 --tools brctl --faulty 0 --sweep 0

`--install` makes a virtual environment with the peers; without it those on PATH are measured, and
BRCTL_BENCH_PSSH names a Python that has parallel-ssh. A tool that is not there is left out aloud.

Runs are interleaved and medians reported; wall times include the server's CPU on the same machine,
the client's CPU is what a login node would notice. "login" is that CPU without what the tool spends
on one host: what each further host costs.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.fanout_peers import install_peers
from tests.bench.fanout_site import Fleet, enter_namespaces, make_faulty, open_fleet
from tests.bench.fanout_sweep import measure_sweeps
from tests.bench.fanout_tools import CONNECT_S, LOGIN_S, ToolRun, measure, tool_commands

PEERS = ("clush -f 64", "pdsh -f 64", "parallel-ssh 128", "ansible -f 64 raw")


def main() -> None:
    options = _read_options()
    if options.install and not os.environ.get("BRCTL_BENCH_INSIDE"):
        install_peers(options.install.absolute())
    # An installed tool has its bytecode: a source tree that may not write it compiles each time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    enter_namespaces([sys.executable, "-m", "tests.bench.fanout", *sys.argv[1:]])
    sizes = [int(size) for size in options.sizes.split(",")]
    with tempfile.TemporaryDirectory(prefix="brctl-bench-") as name:
        try:
            _measure_all(Path(name), sizes, options)
        finally:
            subprocess.run(["umount", "/etc/passwd"], check=False)


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="16,64,256", help="numbers of hosts")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--faulty", type=int, default=256, help="hosts of the sick fleet; 0 skips")
    parser.add_argument("--tools", default="", help="only tools whose names begin so: brctl,clush")
    parser.add_argument("--sweep", type=int, default=64, help="hosts of the level-1 sweep; 0 skips")
    parser.add_argument("--install", type=Path, help="folder for the peers' environment")
    return parser.parse_args()


def _measure_all(folder: Path, sizes: Sequence[int], options: argparse.Namespace) -> None:
    with open_fleet(folder, max(*sizes, options.faulty, options.sweep)) as fleet:
        wanted = tuple(options.tools.split(","))
        missing = [tool for tool in PEERS if tool not in tool_commands(fleet)]
        if missing:
            print(f"NOT MEASURED, not installed here: {', '.join(missing)}", flush=True)
        _interleaved(Fleet(folder, fleet.hosts[:1]), 1, wanted)  # files read once, bytecode written
        alone = _interleaved(Fleet(folder, fleet.hosts[:1]), options.repeats, wanted)
        start_s = {run.tool: _median_cpu_s(alone, run.tool) for run in alone}
        _report("1 host", alone, {})
        for size in sizes:
            part = Fleet(folder, fleet.hosts[:size])
            _report(f"{size} hosts", _interleaved(part, options.repeats, wanted), start_s)
        if options.sweep:
            measure_sweeps(Fleet(folder, fleet.hosts[: options.sweep]))
        if options.faulty:
            faulty = make_faulty(Fleet(folder, fleet.hosts[: options.faulty]))
            title = f"{options.faulty} hosts, {len(faulty.faulty)} of them sick"
            _report(
                f"{title} (deadline {CONNECT_S} s, login {LOGIN_S} s)",
                _interleaved(faulty, 1, wanted),
                start_s,
            )


def _interleaved(fleet: Fleet, repeats: int, wanted: tuple[str, ...]) -> list[ToolRun]:
    commands = {k: v for k, v in tool_commands(fleet).items() if k.startswith(wanted)}
    return [measure(tool, commands[tool], fleet) for _ in range(repeats) for tool in commands]


def _report(title: str, runs: Sequence[ToolRun], start_s: Mapping[str, float]) -> None:
    head = ("tool", "wall s", "CPU s", "CPU ms/host", "login ms", "peak MB", "right")
    print(f"\n{title}\n" + _row(*head), flush=True)
    for tool in dict.fromkeys(run.tool for run in runs):
        own = [run for run in runs if run.tool == tool]
        cpu_s, total = _median_cpu_s(runs, tool), own[0].total
        wall_s = statistics.median(run.wall_s for run in own)
        peak_mb = max(run.peak_mb for run in own)
        right = f"{min(run.right for run in own)}/{total}"
        login = "-"
        if tool in start_s and total > 1:
            login = f"{1000 * (cpu_s - start_s[tool]) / (total - 1):.1f}"
        per_host = f"{1000 * cpu_s / total:.1f}"
        cells = (f"{wall_s:.2f}", f"{cpu_s:.2f}", per_host, login, f"{peak_mb:.0f}", right)
        print(_row(tool, *cells), flush=True)


def _median_cpu_s(runs: Sequence[ToolRun], tool: str) -> float:
    return statistics.median(run.cpu_s for run in runs if run.tool == tool)


def _row(tool: str, *cells: str) -> str:
    return f"{tool:<18}" + "".join(f"{cell:>13}" for cell in cells)


if __name__ == "__main__":
    main()
