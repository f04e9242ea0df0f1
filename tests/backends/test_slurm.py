"""Slurm's answers are read as they are printed, and a real Slurm does what brctl wants."""

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from time import monotonic

import pytest

from brctl.backends.contract import Cordon
from brctl.backends.slurm import SlurmBackend
from brctl.backends.slurm_commands import (
    drain,
    parse_cordons,
    parse_queue,
    parse_standbys,
    submit,
)
from brctl.fanout.local import LocalTransport
from brctl.model.errors import BrctlError, UnavailableError
from brctl.model.inventory import Inventory, Node
from brctl.model.job import Job
from tests.fakes.slurm_cluster import missing, slurm_cluster

AT = datetime(2026, 7, 5, 12, tzinfo=UTC)
NAMES = ("n1", "n2", "n3", "s1")

SINFO = """\
n1|idle|Unknown|Unknown|none
n2|drained|root(0)|2026-07-05T12:00:00|[brctl:R-0007] V-1 a GPU fell off the bus
n3|draining@|ann(1001)|2026-07-05T11:00:00|fan | loud
n4|down*|slurm(64030)|2026-07-05T10:00:00|Not responding
s1|drained|root(0)|2026-07-05T09:00:00|brctl standby
garbage
"""


def test_owners_and_reasons_are_read_from_sinfo() -> None:
    """A run, a person and Slurm itself are told apart; a waiting standby is not cordoned."""
    found = parse_cordons(SINFO)
    assert {n: (c.owner, c.reason) for n, c in found.items()} == {
        "n2": ("brctl:R-0007", "V-1 a GPU fell off the bus"),
        "n3": ("ann", "fan | loud"),
        "n4": ("slurm", "Not responding"),
    }
    assert parse_standbys(SINFO) == {"s1"}


def test_a_time_slurm_does_not_know_is_not_invented() -> None:
    """No time is None, not now."""
    line = "n9|drained|root(0)|Unknown|[brctl:R-1] x"
    assert parse_cordons(line) == {"n9": Cordon("n9", "brctl:R-1", "x", None)}


def test_a_completing_job_has_ended() -> None:
    """Its nodes may take a while to answer; the restart does not wait for a dead one."""
    text = "12 |RUNNING |R-0001 |None\n13|COMPLETING|R-0002|None\n\n"
    assert [(j.id, j.incarnation) for j in parse_queue(text)] == [("12", "R-0001")]


def test_arguments_are_lists_and_lines_stay_lines() -> None:
    """Nothing a log line holds becomes a second argument or a second line."""
    argv = drain(["n1", "n2"], "brctl:R-1", "a b; $(rm -rf /)\nState=IDLE")
    assert argv[2:] == (
        "NodeName=n[1-2]",
        "State=DRAIN",
        "Reason=[brctl:R-1] a b; $(rm -rf /) State=IDLE",
    )
    assert "--nodelist=n[1-2]" in submit("brctl-j", ["n2", "n1"], 8, "R-1", "/logs/x")


async def test_without_slurm_the_error_names_the_program(tmp_path: Path) -> None:
    """A missing sinfo is not an empty list of cordons."""
    path = os.environ["PATH"]
    backend = SlurmBackend(tmp_path / "s.json", LocalTransport(), Inventory({}), 8)
    os.environ["PATH"] = str(tmp_path)
    try:
        with pytest.raises(UnavailableError, match="sinfo: cannot be run"):
            await backend.cordons()
    finally:
        os.environ["PATH"] = path


def swapped_job(folder: Path) -> Job:
    """Ranks that write who and where they are."""
    script = "echo $RANK $SLURMD_NODENAME $BRCTL_RESUME_FROM; while :; do sleep 0.05; done"
    return Job(
        name="swapped",
        nodes=("n3", "n1", "n2"),
        ranks_per_node=1,
        axes=(("dp", 3),),
        launch=("/bin/sh", "-c", script),
        checkpoint_dir=PurePosixPath(folder / "ckpt"),
        log_dir=PurePosixPath(folder / "logs"),
        progress_dir=PurePosixPath(folder / "progress"),
    )


@pytest.mark.slurm
def test_a_drained_node_is_replaced_by_a_standby_that_waited_drained(tmp_path: Path) -> None:
    """Stop, swap and start through a real Slurm: every rank is on the node brctl chose for it."""
    absent = missing()
    if absent:
        pytest.skip(f"not installed: {absent}")
    job = swapped_job(tmp_path)
    (tmp_path / "logs").mkdir()
    with slurm_cluster(tmp_path, NAMES):
        seconds = asyncio.run(swap(tmp_path, job))
    logs = [(tmp_path / "logs" / f"rank-{r:05d}.log").read_text().split() for r in range(3)]
    assert logs == [["0", "n3", "/c"], ["1", "s1", "/c"], ["2", "n2", "/c"]]
    # A requeue would have waited two minutes; a new submission does not.
    assert seconds < 60


async def swap(folder: Path, job: Job) -> float:
    nodes = {name: Node(name, "127.0.0.1") for name in NAMES}
    backend = SlurmBackend(folder / "s.json", LocalTransport(), Inventory(nodes), 8)
    await backend._run(("scontrol", "update", "NodeName=s1", "State=DRAIN", "Reason=brctl standby"))
    assert await backend.cordons() == {}
    assert (await backend.start_job(job, "", "R-1")).failed == {}
    await backend.cordon(["n1"], "brctl:R-2", "test", AT)
    # A drained node keeps its job until the job ends.
    assert len((await backend.job_status(job)).alive) == 3
    refused = await backend.start_job(job, "", "R-2")
    assert "of an earlier start" in refused.failed["n2"]
    started = monotonic()
    stopped = await backend.stop_job(job, 5.0)
    assert (stopped.stopped, stopped.killed) == ((0, 1, 2), ())
    moved = await backend.replace_nodes(job, {"n1": "s1"})
    assert (await backend.start_job(moved, "/c", "R-2")).failed == {}
    seconds = monotonic() - started
    await asyncio.sleep(0.3)
    await backend.stop_job(moved, 5.0)
    assert set(await backend.cordons()) == {"n1"}
    return seconds


@pytest.mark.slurm
def test_a_job_slurm_cannot_place_is_withdrawn(tmp_path: Path) -> None:
    """A node that is drained keeps the job pending: the start fails and leaves nothing queued."""
    absent = missing()
    if absent:
        pytest.skip(f"not installed: {absent}")
    (tmp_path / "logs").mkdir()
    with slurm_cluster(tmp_path, NAMES):
        asyncio.run(start_on_drained(tmp_path, swapped_job(tmp_path)))


async def start_on_drained(folder: Path, job: Job) -> None:
    nodes = {name: Node(name, "127.0.0.1") for name in NAMES}
    backend = SlurmBackend(folder / "s.json", LocalTransport(), Inventory(nodes), 8)
    backend.start_deadline_s = 3.0
    await backend.cordon(["n1"], "brctl:R-1", "test", AT)
    try:
        report = await backend.start_job(job, "", "R-1")
        assert report.started == ()
        assert "slurm: still PENDING" in report.failed["n1"]
    except BrctlError as exc:
        # Newer versions of Slurm refuse at once.
        assert "sbatch said" in str(exc)  # noqa: PT017 - either answer is right
    assert await backend._queued(job) == ()
