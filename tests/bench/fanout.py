"""brctl beside clush, pdsh, parallel-ssh and Ansible on up to 1,000 hosts of one real sshd.

    python -m tests.bench.fanout --sizes 16,64,256 --repeats 3
    python -m tests.bench.fanout --sizes 1000 --repeats 1 --tools brctl --faulty 0 --sweep 0

BRCTL_BENCH_PSSH names a Python that has parallel-ssh, BRCTL_BENCH_ANSIBLE an `ansible`.

Runs are interleaved and medians reported; wall times include the server's CPU on the same machine,
the client's CPU is what a login node would notice. A tool that is not installed is left out aloud.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.fanout_site import Fleet, enter_namespaces, make_faulty, open_fleet
from tests.bench.fanout_sweep import measure_sweeps
from tests.bench.fanout_tools import CONNECT_S, LOGIN_S, Run, measure, tool_commands

PEERS = ("clush -f 64", "pdsh -f 64", "parallel-ssh 128", "ansible -f 64 raw")


def main() -> None:
    options = _read_options()
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
    return parser.parse_args()


def _measure_all(folder: Path, sizes: Sequence[int], options: argparse.Namespace) -> None:
    with open_fleet(folder, max(*sizes, options.faulty, options.sweep)) as fleet:
        wanted = tuple(options.tools.split(","))
        missing = [tool for tool in PEERS if tool not in tool_commands(fleet)]
        if missing:
            print(f"NOT MEASURED, not installed here: {', '.join(missing)}", flush=True)
        for size in sizes:
            part = Fleet(folder, fleet.hosts[:size])
            _report(f"{size} hosts", _interleaved(part, options.repeats, wanted))
        if options.sweep:
            measure_sweeps(Fleet(folder, fleet.hosts[: options.sweep]))
        if options.faulty:
            sick = make_faulty(Fleet(folder, fleet.hosts[: options.faulty]))
            title = f"{options.faulty} hosts, {len(sick.faulty)} of them sick"
            _report(
                f"{title} (deadline {CONNECT_S} s, login {LOGIN_S} s)",
                _interleaved(sick, 1, wanted),
            )


def _interleaved(fleet: Fleet, repeats: int, wanted: tuple[str, ...]) -> list[Run]:
    commands = {k: v for k, v in tool_commands(fleet).items() if k.startswith(wanted)}
    return [measure(tool, commands[tool], fleet) for _ in range(repeats) for tool in commands]


def _report(title: str, runs: Sequence[Run]) -> None:
    head = ("tool", "wall s", "CPU s", "CPU ms/host", "peak MB", "right")
    print(f"\n{title}\n" + _row(*head), flush=True)
    for tool in dict.fromkeys(run.tool for run in runs):
        own = [run for run in runs if run.tool == tool]
        cpu_s = statistics.median(run.cpu_s for run in own)
        wall_s = statistics.median(run.wall_s for run in own)
        peak_mb = max(run.peak_mb for run in own)
        right = f"{min(run.right for run in own)}/{own[0].total}"
        per_host_ms = 1000 * cpu_s / own[0].total
        cells = (f"{wall_s:.2f}", f"{cpu_s:.2f}", f"{per_host_ms:.1f}", f"{peak_mb:.0f}", right)
        print(_row(tool, *cells), flush=True)


def _row(tool: str, *cells: str) -> str:
    return f"{tool:<18}" + "".join(f"{cell:>13}" for cell in cells)


if __name__ == "__main__":
    main()
