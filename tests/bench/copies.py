"""`brctl cp` beside `clush --copy` on hosts of one real sshd: seconds, client CPU, and the ratio.

    python -m tests.bench.copies --install /tmp/peers
    python -m tests.bench.copies --cases 64x4K,8x64M --repeats 5

A case is HOSTSxSIZE. Runs are interleaved and medians reported. Client and sshd share this machine,
so wall times include the server's CPU: what a copy costs who starts it is the client's.
"""

import argparse
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brctl.model.units import parse_size_bytes
from tests.bench.fanout_peers import install_peers
from tests.bench.fanout_site import Fleet, enter_namespaces, open_fleet
from tests.bench.fanout_tools import CONNECT_S, ToolRun, run_once, write_config

_PIECE_BYTES = 1 << 20
TOOLS = ("brctl cp", "clush --copy")


def main() -> None:
    options = _read_options()
    if options.install and not os.environ.get("BRCTL_BENCH_INSIDE"):
        install_peers(options.install.absolute())
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    enter_namespaces([sys.executable, "-m", "tests.bench.copies", *sys.argv[1:]])
    cases = [case.split("x") for case in options.cases.split(",")]
    with tempfile.TemporaryDirectory(prefix="brctl-bench-") as name:
        try:
            with open_fleet(Path(name), max(int(count) for count, _ in cases)) as fleet:
                print("hosts   size  tool          wall s   CPU s   MiB")
                for count, size in cases:
                    _measure_case(fleet, int(count), size, options.repeats)
        finally:
            subprocess.run(["umount", "/etc/passwd"], check=False)


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default="64x4K,32x1M,8x64M,2x512M", help="HOSTSxSIZE,...")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--install", type=Path, help="folder for the peers' environment")
    return parser.parse_args()


def _measure_case(fleet: Fleet, count: int, size: str, repeats: int) -> None:
    hosts = Fleet(fleet.folder, fleet.hosts[:count])
    with _payload(parse_size_bytes(size)) as (source, target):
        runs = [_measure(tool, hosts, source, target) for _ in range(repeats) for tool in TOOLS]
    wall_s: dict[str, float] = {}
    for tool in TOOLS:
        own = [run for run in runs if run.tool == tool]
        wall_s[tool] = statistics.median(run.wall_s for run in own)
        cpu_s = statistics.median(run.cpu_s for run in own)
        peak_mb = max(run.peak_mb for run in own)
        print(f"{count:5}  {size:>5}  {tool:12}  {wall_s[tool]:6.2f}  {cpu_s:6.2f}  {peak_mb:4.0f}")
    print(f"              brctl / clush {wall_s[TOOLS[0]] / wall_s[TOOLS[1]]:6.2f}", flush=True)


@contextmanager
def _payload(size_bytes: int) -> Iterator[tuple[Path, Path]]:
    """A file that does not compress and where it goes, both in memory: no disk is measured."""
    with tempfile.TemporaryDirectory(prefix="brctl-bench-", dir="/dev/shm") as name:
        source = Path(name) / "source"
        with source.open("wb") as stream:  # in pieces: a child's peak begins at ours
            for _ in range(-(-size_bytes // _PIECE_BYTES)):
                stream.write(os.urandom(min(size_bytes, _PIECE_BYTES)))
        yield source, Path(name) / "copy"


def _measure(tool: str, fleet: Fleet, source: Path, target: Path) -> ToolRun:
    target.unlink(missing_ok=True)
    run = run_once(tool, _argv(tool, fleet, source, target), fleet)
    if not target.exists() or _digest(source) != _digest(target):
        text = (fleet.folder / "output").read_text(errors="replace")
        raise SystemExit(f"copies: {tool} left another file: {text[-500:]}")
    return run


def _argv(tool: str, fleet: Fleet, source: Path, target: Path) -> list[str]:
    hostfile = fleet.folder / f"hosts-{len(fleet.hosts)}"
    hostfile.write_text("".join(f"{host}\n" for host in fleet.hosts))
    if tool == TOOLS[0]:
        config = write_config(fleet.folder, hostfile, "asyncssh")
        return [sys.executable, "-m", "brctl", "--config", str(config), "cp", "-w", "@all",
                str(source), str(target)]  # fmt: skip
    return ["clush", "-S", "-f", "64", "-t", str(CONNECT_S), "--hostfile", str(hostfile),
            "--copy", str(source), "--dest", str(target)]  # fmt: skip


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


if __name__ == "__main__":
    main()
