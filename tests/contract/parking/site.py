"""Nodes of this machine, and a job whose processes are parked on them."""

import asyncio
import json
import os
import venv
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from time import monotonic

from brctl.backends.ranks.parking import Parking
from brctl.backends.static.backend import StaticBackend
from brctl.fanout.local import LocalTransport
from brctl.model.inventory import Inventory, Node
from brctl.model.jobs.job import Job
from tests.own_processes import pids_inside
from tests.timeouts import TIMEOUT_S

SCRIPT = """\
import helper, json, os, sys
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "BRCTL_RESUME_FROM", "SHADE")
print(json.dumps({"pid": os.getpid(), "argv": sys.argv, "name": __name__,
                  "main": sys.modules["__main__"].__file__,
                  "environment": {n: os.environ.get(n) for n in names},
                  "parked": os.environ.get("BRCTL_PARKED")}), flush=True)
import time
time.sleep(3600 if len(sys.argv) < 3 else float(sys.argv[2]))
raise SystemExit(7)
"""
LEASE_S = TIMEOUT_S
# A start ends what is parked for other jobs on its node, and other workers of this run have an n1,
# and a folder of this name, too.
N1, N2 = f"n1-{os.getpid()}", f"n2-{os.getpid()}"


@dataclass
class ParkingSite:
    """Nodes of this machine, the backend and the job of one test."""

    folder: Path
    backend: StaticBackend
    parking: Parking
    job: Job

    async def park(self, node: str = N1, lease_s: float = LEASE_S) -> None:
        found = (await self.parking.park(self.job, [node], lease_s))[node]
        assert found.is_whole, found

    def said(self, rank: int) -> dict[str, object]:
        """What a rank's program wrote about itself."""
        text = (self.folder / "logs" / f"rank-{rank:05d}.log").read_text()
        value: dict[str, object] = json.loads(text.splitlines()[0])
        return value

    def parked_pids(self, node: str = N1) -> list[int]:
        records = sorted((self.folder / "logs").glob(f"parked-{node}-*.record"))
        return [json.loads(path.read_text())["pid"] for path in records]


def bare_python(folder: Path) -> str:
    """An interpreter without torch, whose import would be most of every test."""
    venv.create(folder, with_pip=False, symlinks=True)
    return str(folder / "bin" / "python")


def job_in(folder: Path, launch: Sequence[str], name: str = "") -> Job:
    return Job(
        name=name or f"park-{folder.name}-{os.getpid()}",
        nodes=(N1,),
        ranks_per_node=2,
        axes=(("dp", 2),),
        launch=tuple(launch),
        checkpoint_dir=PurePosixPath(folder / "ckpt"),
        log_dir=PurePosixPath(folder / "logs"),
        progress_dir=PurePosixPath(folder / "progress"),
        environment={"SHADE": "teal"},
        workdir=PurePosixPath(folder),
        warm=("helper",),
    )


async def open_parking_site(tmp_path: Path, python: str) -> AsyncIterator[ParkingSite]:
    """The site, with nothing of its job left behind."""
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text("shade = 1\n")
    inventory = Inventory({name: Node(name, "127.0.0.1") for name in (N1, N2)})
    transport = LocalTransport()
    backend = StaticBackend(tmp_path / "static.json", transport, inventory, 8)
    job = job_in(tmp_path, (python, "-u", "train.py", "--depth"))
    site = ParkingSite(tmp_path, backend, Parking(transport, inventory, 8), job)
    yield site
    stopped = await site.backend.stop_job(site.job, 0.1)
    assert (stopped.stuck, dict(stopped.unreachable)) == ((), {})
    assert await site.parking.unpark(site.job, [N1, N2]) == {}
    await transport.close()
    assert processes_of(site.job) == [], stopped


def processes_of(job: Job) -> list[int]:
    """Every living process that carries the job's name."""
    return pids_inside(f"BRCTL_JOB={job.name}")


def command_line(pid: int) -> tuple[str, ...]:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    return tuple(word.decode() for word in words)


async def until(happened: object) -> None:
    assert callable(happened)
    deadline = monotonic() + TIMEOUT_S
    while not happened():
        assert monotonic() < deadline
        await asyncio.sleep(0.02)
