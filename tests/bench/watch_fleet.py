"""What a watcher of 1,000 nodes costs its controller, and what happens when all of them go at once.

    python -m tests.bench.watch_fleet [--size 1000] [--minutes 1.5]

One server in namespaces of its own plays all nodes. What they say was recorded from this machine's
own look of `--minutes` and comes again and again, a heartbeat of each node every 10 s among it; a
node here has no GPU, so nodes with eight have more to tell. CPU is that of the watcher's process
alone, as a share of one core. The storm: the server cuts all connections in one moment.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import asyncssh

from tests.bench.fanout_site import PORT, Fleet, addresses, enter_namespaces, write_keys
from tests.bench.fanout_tools import write_config
from tests.bench.watched_lab import end, until

GOAL_PERCENT, GOAL_MB = 20.0, 300.0
UP_S = 180.0
_TICK = os.sysconf("SC_CLK_TCK")


class PlayedNodes:
    """An SSH server that is every node: the first login runs what it is sent, others hear that."""

    def __init__(self, recording: Path, period_s: float) -> None:
        self._recording, self._period_s = recording, period_s
        self._open: set[asyncssh.connection.SSHConnection] = set()

    async def serve(self, folder: Path) -> None:
        """Until the process is told to end; SIGUSR1 cuts every connection."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, self._cut_all)
        listening = await asyncssh.listen(
            "0.0.0.0", PORT, backlog=2048, server_host_keys=[str(folder / "host_key")],  # noqa: S104
            authorized_client_keys=str(folder / "authorized"), process_factory=self._node,
            encoding=None,
        )  # fmt: skip
        await listening.wait_closed()

    def _cut_all(self) -> None:
        for connection in list(self._open):
            connection.abort()

    async def _node(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        connection = process.channel.get_connection()
        self._open.add(connection)
        try:
            with contextlib.suppress(OSError, asyncssh.Error):
                if self._recording.exists():
                    await self._play(process)
                else:
                    await self._record(process)
        finally:
            self._open.discard(connection)
            process.exit(0)

    async def _record(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        """Run the program here, and keep each line with the second it came in."""
        program = await asyncio.create_subprocess_shell(
            str(process.command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            limit=1 << 20,
        )
        began, lines = time.monotonic(), []
        feeding = asyncio.ensure_future(_feed(process, program.stdin))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._period_s):
                while program.stdout and (line := await program.stdout.readline()):
                    lines.append([time.monotonic() - began, line.decode()])
        feeding.cancel()
        program.terminate()
        await program.wait()
        self._recording.write_text(json.dumps(lines))

    async def _play(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        """What was recorded, its looks counted on from one round to the next."""
        listening = asyncio.ensure_future(_read_all(process))
        lines = [(at, json.loads(line)) for at, line in json.loads(self._recording.read_text())]
        hello, *rest = lines
        process.stdout.write(_line(hello[1]))
        began, rounds = time.monotonic(), 0
        while not listening.done():
            for at, row in rest:
                await asyncio.sleep(began + rounds * self._period_s + at - time.monotonic())
                process.stdout.write(_line(_counted_on(row, rounds)))
            rounds += 1
            await asyncio.sleep(began + rounds * self._period_s - time.monotonic())


def _counted_on(row: Mapping[str, object], rounds: int) -> Mapping[str, object]:
    look = row.get("look")
    return {**row, "look": look + 1000 * rounds} if isinstance(look, int) else row


def _line(row: Mapping[str, object]) -> bytes:
    return json.dumps(row).encode() + b"\n"


async def _feed(
    process: asyncssh.SSHServerProcess[bytes], into: asyncio.StreamWriter | None
) -> None:
    while into and (piece := await process.stdin.read(65536)):
        into.write(piece)
        await into.drain()


async def _read_all(process: asyncssh.SSHServerProcess[bytes]) -> None:
    with contextlib.suppress(asyncssh.Error, asyncssh.SignalReceived):
        while await process.stdin.read(65536):
            pass


class Watcher:
    """A `brctl watch` of a fleet, and what it has cost so far."""

    def __init__(self, config: Path, environment: Mapping[str, str]) -> None:
        self._brctl = [sys.executable, "-m", "brctl", "--config", str(config)]
        self._environment = dict(environment)
        self._process = subprocess.Popen(
            [*self._brctl, "watch"], env=self._environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def status(self) -> Mapping[str, object]:
        done = subprocess.run(
            [*self._brctl, "watch", "status", "--lines", "1000", "-o", "json"],
            env=self._environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        try:
            return dict(json.loads(done.stdout))
        except ValueError:
            return {}

    def wait_until_talking(self, count: int) -> float:
        """Seconds until so many nodes talk."""
        began = time.monotonic()
        while self.status().get("talking") != count:
            if time.monotonic() - began > UP_S:
                raise SystemExit(f"watch_fleet: not {count} nodes talk after {UP_S:g} s")
            time.sleep(1.0)
        return time.monotonic() - began

    def cpu_s(self) -> float:
        stat = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / _TICK

    def peak_mb(self) -> float:
        words = Path(f"/proc/{self._process.pid}/status").read_text().split()
        return int(words[words.index("VmHWM:") + 1]) / 1024

    def end(self) -> None:
        end(self._process)


@contextlib.contextmanager
def watched(config: Path) -> Iterator[Watcher]:
    """A watcher that ends with the block."""
    watcher = Watcher(config, os.environ)
    try:
        yield watcher
    finally:
        watcher.end()


@contextlib.contextmanager
def played(folder: Path, period_s: float) -> Iterator[subprocess.Popen[bytes]]:
    """The nodes, in a process of their own."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.watch_fleet", "--serve", str(folder),
         "--minutes", str(period_s / 60)],
    )  # fmt: skip
    try:
        yield server
    finally:
        end(server)


def _config(fleet: Fleet, hosts: Sequence[str]) -> Path:
    hostfile = fleet.folder / f"hosts-{len(hosts)}"
    hostfile.write_text("\n".join(hosts) + "\n")
    return write_config(fleet.folder, hostfile, "asyncssh", state=f"state-{len(hosts)}")


def measure(fleet: Fleet, period_s: float) -> bool:
    """Print the figures; whether the goals are met."""
    with played(fleet.folder, period_s) as server:
        with watched(_config(fleet, fleet.hosts[:1])):
            if not until((fleet.folder / "recording").exists, period_s + UP_S):
                raise SystemExit(f"watch_fleet: nothing was recorded in {period_s + UP_S:g} s")
        count = len(fleet.hosts)
        with watched(_config(fleet, fleet.hosts)) as watcher:
            up_s = watcher.wait_until_talking(count)
            up_cpu_s, began = watcher.cpu_s(), time.monotonic()
            time.sleep(period_s)
            percent = 100 * (watcher.cpu_s() - up_cpu_s) / (time.monotonic() - began)
            lines = len(json.loads((fleet.folder / "recording").read_text()))
            print(f"each node says {60 * lines / period_s:.0f} lines a minute")
            print(f"{count} nodes talk after {up_s:.0f} s ({up_cpu_s:.1f} s CPU)")
            print(f"watching: {percent:.1f} % of a core (goal {GOAL_PERCENT:g}),", end=" ")
            print(f"peak {watcher.peak_mb():.0f} MB (goal {GOAL_MB:g})", flush=True)
            storm_from = watcher.cpu_s()
            server.send_signal(signal.SIGUSR1)
            time.sleep(2.0)
            back_s = 2.0 + watcher.wait_until_talking(count)
            print(f"all cut at once: {count} talk again after {back_s:.0f} s", end=" ")
            print(f"({watcher.cpu_s() - storm_from:.1f} s CPU), peak {watcher.peak_mb():.0f} MB")
            kinds = _kinds(watcher.status())
            print(f"written meanwhile: {kinds}")
            met = percent <= GOAL_PERCENT and watcher.peak_mb() <= GOAL_MB
            return met and "suspicion" not in kinds


def _kinds(status: Mapping[str, object]) -> dict[str, int]:
    records = status.get("records")
    kinds = [str(record["kind"]) for record in records] if isinstance(records, list) else []
    return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=1.5)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    period_s = options.minutes * 60
    if options.serve:
        asyncio.run(PlayedNodes(options.serve / "recording", period_s).serve(options.serve))
        return 0
    enter_namespaces([sys.executable, "-m", "tests.bench.watch_fleet", *sys.argv[1:]])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory(prefix="brctl-bench-") as name:
        hosts = addresses(options.size)
        write_keys(Path(name), hosts)
        try:
            return int(not measure(Fleet(Path(name), hosts), period_s))
        finally:
            subprocess.run(["umount", "/etc/passwd"], check=False)


if __name__ == "__main__":
    sys.exit(main())
