"""A command on many hosts cold, and again through the connection broker: CPU of client and broker.

python -m tests.bench.fanout_broker --size 256
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.fanout_site import PORT, SAY, Fleet, enter_namespaces, open_fleet

_CLIENT = """
import asyncio, sys, time
from pathlib import Path
from brctl.fanout.choose import open_transport
from brctl.fanout.gather import gather
from brctl.library.config import SshSettings
from brctl.model.command import Command
from brctl.model.inventory import Node
folder, kind, port, *hosts = sys.argv[1:]
async def main():
    ssh = SshSettings("root", (Path(folder, "id"),), Path(folder, "known_hosts"), transport=kind)
    transport = open_transport(ssh)
    nodes = [Node(host, host, int(port)) for host in hosts]
    command = Command(("echo", "%s"))
    answers = gather(transport, nodes, lambda _: command, limit=64)
    right = [answer.exit_status == 0 async for answer in answers]
    await transport.close()
    print(f"{sum(right)}/{len(hosts)} {time.process_time():.2f}")
started = time.perf_counter()
asyncio.run(main())
print(f"{time.perf_counter() - started:.2f}")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=256)
    size = parser.parse_args().size
    enter_namespaces([sys.executable, "-m", "tests.bench.fanout_broker", *sys.argv[1:]])
    with tempfile.TemporaryDirectory(prefix="brctl-bench-") as name:
        os.environ["XDG_RUNTIME_DIR"] = f"{name}/run"
        try:
            with open_fleet(Path(name), size) as fleet:
                _compare(fleet)
        finally:
            subprocess.run(["umount", "/etc/passwd"], check=False)


def _compare(fleet: Fleet) -> None:
    print(f"{'':<22}{'right':>9}{'wall s':>9}{'client CPU s':>14}{'broker CPU s':>14}")
    for title, kind in (
        ("cold, direct", "asyncssh"),
        ("first, through broker", "broker"),
        ("again, through broker", "broker"),
    ):
        before = broker_cpu_s(fleet)
        done = subprocess.run(
            [sys.executable, "-c", _CLIENT % SAY, str(fleet.folder), kind, str(PORT), *fleet.hosts],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        right, cpu_s, wall_s = done.stdout.split()
        broker_s = broker_cpu_s(fleet) - before
        print(f"{title:<22}{right:>9}{wall_s:>9}{cpu_s:>14}{broker_s:>14.2f}", flush=True)
    os.kill(broker_pid(fleet), 15)


def broker_pid(fleet: Fleet) -> int:
    """The broker of this fleet's runtime directory; 0 when none runs."""
    lock = fleet.folder / "run" / "brctl" / "broker.lock"
    return int(lock.read_text()) if lock.exists() else 0


def broker_cpu_s(fleet: Fleet) -> float:
    """CPU the broker has used so far."""
    pid = broker_pid(fleet)
    if not pid:
        return 0.0
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
