"""How fast the terminal interface is on 5,000 nodes with 8 GPUs: python -m tests.bench.tui.

Prints each figure beside its goal, as CPU time of this process and as wall time: on a shared
machine only the first says something about the program. Exit 1 when a goal is missed in CPU time.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from tests.bench.tui_site import make_fleet

NODES = 5000
SIZE = (200, 55)
REPEATS = 9


class Stopwatch:
    """CPU and wall milliseconds since the start."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    @property
    def spent(self) -> tuple[float, float]:
        return (
            (time.process_time() - self._cpu) * 1000,
            (time.perf_counter() - self._wall) * 1000,
        )


def anonymous_mb() -> float:
    """Memory that is ours alone; pages of a mapped file belong to the page cache."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return float("nan")


def resident_mb() -> float:
    """All resident memory, shared pages of files included."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


async def median_of(act: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """The middle of several measurements."""
    spent = []
    for _ in range(REPEATS):
        watch = Stopwatch()
        await act()
        spent.append(watch.spent)
    cpu, wall = sorted(s[0] for s in spent), sorted(s[1] for s in spent)
    return cpu[len(cpu) // 2], wall[len(wall) // 2]


async def measure(folder: Path) -> list[tuple[str, float, float, float]]:
    """Name, CPU, wall and goal of everything inside one process, imports included."""
    start = Stopwatch()
    from brctl.library.config import load_settings
    from brctl.tui.address import Address
    from brctl.tui.session.state_reader import DiskStateReader
    from brctl.tui.widgets.heatmap import Heatmap
    from tests.bench.tui_app import BenchApp

    settings = load_settings({"HOME": str(folder)}, config=folder / "config.yaml")
    app = BenchApp(DiskStateReader(settings), Address())
    rows = []
    async with app.run_test(size=SIZE) as pilot:
        await asyncio.wait_for(app.painted.wait(), 60)
        rows.append(("first frame with the fleet", *start.spent, 600.0))
        assert app.facts is not None
        heatmap = app.screen.query_one(Heatmap)
        facts = app.facts

        async def lay_out() -> None:
            heatmap._lines = []
            heatmap.show(facts.nodes)
            await pilot.pause()

        async def tick() -> None:
            app.redraw()
            await asyncio.sleep(0)

        async def key() -> None:
            await pilot.press("right")

        rows.append(("heatmap mount", *await median_of(lay_out), 300.0))
        rows.append(("refresh tick", *await median_of(tick), 60.0))
        rows.append(("key to paint", *await median_of(key), 100.0))
        app.go(Address("node", "gpu0008"))
        await pilot.pause()
        rows.append(("memory, anonymous MB", anonymous_mb(), resident_mb(), 150.0))
    return rows


def report(rows: Sequence[tuple[str, float, float, float]]) -> int:
    """Print the table; 1 when a goal is missed."""
    print(f"{'what':28}{'CPU ms':>10}{'wall ms':>10}{'goal':>8}")
    missed = 0
    for name, cpu, wall, goal in rows:
        missed += cpu > goal
        print(f"{name:28}{cpu:10.1f}{wall:10.1f}{goal:8.0f}{'  MISSED' if cpu > goal else ''}")
    print("memory: the second figure is resident memory with file pages")
    return 1 if missed else 0


def main(argv: list[str]) -> int:
    """Build the fleet once, measure in a fresh process."""
    parser = argparse.ArgumentParser(description="How fast the terminal interface is.")
    parser.add_argument("fleet", nargs="?", type=Path, help="measure in this folder, already made")
    fleet: Path | None = parser.parse_args(argv).fleet
    if fleet is not None:
        return report(asyncio.run(measure(fleet)))
    with tempfile.TemporaryDirectory() as folder:
        print(f"writing a sweep of {NODES} nodes ...")
        settings = make_fleet(Path(folder), NODES)
        size = sum(path.stat().st_size for path in (settings.state_dir / "sweeps").iterdir())
        print(f"index of sweeps: {size / 1e6:.0f} MB")
        return subprocess.run(
            [sys.executable, "-m", "tests.bench.tui", folder], check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
