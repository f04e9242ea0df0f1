"""Slurm's answers are read as they are printed, and a real Slurm does what brctl wants."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from time import monotonic

import pytest

from brctl.backends.contract import Cordon
from brctl.backends.slurm.backend import SlurmBackend
from brctl.backends.slurm.commands import (
    drain,
    parse_cordons,
    parse_queue,
    parse_standbys,
    submit,
)
from brctl.fanout.local import LocalTransport
from brctl.inventory.slurm import load_slurm
from brctl.model.errors import BrctlError, UnavailableError
from brctl.model.inventory import Inventory, Node, NodeRole
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import JobRunState
from tests.fakes.slurm_cluster import ONE_PARTITION, missing, slurm_cluster
from tests.timeouts import TIMEOUT_S

AT = datetime(2026, 7, 5, 12, tzinfo=UTC)
NAMES = ("n1", "n2", "n3", "s1")
REQUEUE_S = 110.0
"""A job that is queued again waits for two minutes at least."""

SINFO = """\
n1|idle|Unknown|Unknown|none
n2|drained|root(0)|2026-07-05T12:00:00|[brctl:R-0007] V-1 a GPU fell off the bus
n3|draining@|ann(1001)|2026-07-05T11:00:00|fan | loud
n4|down*|slurm(64030)|2026-07-05T10:00:00|Not responding
n5|drained*|root(0)|2026-07-05T10:00:00|[brctl:R-0008] Not responding
n6|down|ann(1001)|2026-07-05T10:00:00|board swap
s1|drained|root(0)|2026-07-05T09:00:00|brctl standby
s2|drained*|root(0)|2026-07-05T09:00:00|brctl standby
garbage
"""


def test_owners_and_reasons_are_read_from_sinfo() -> None:
    """A run, a person and Slurm itself are told apart; a waiting standby is not cordoned.

    A standby that fell silent while it waited is: it must not be chosen. Slurm's own mark does not
    last, because with ReturnToService=1 Slurm lifts it when the node comes back.
    """
    found = parse_cordons(SINFO)
    assert {n: (c.owner, c.reason, c.lasting) for n, c in found.items()} == {
        "n2": ("brctl:R-0007", "V-1 a GPU fell off the bus", True),
        "n3": ("ann", "fan | loud", True),
        "n4": ("slurm", "Not responding", False),
        "n5": ("brctl:R-0008", "Not responding", True),
        "n6": ("ann", "board swap", True),
        "s2": ("root", "brctl standby", True),
    }
    assert parse_standbys(SINFO) == {"s1", "s2"}


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
    options = {"partition": "a b", "exclusive": ""}
    argv = submit(replace(swapped_job(Path("/x")), sbatch=options), "brctl-j", "R-1")
    assert "--nodelist=n[1-3]" in argv
    assert argv[-3:] == ("--no-requeue", "--partition=a b", "--exclusive")


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


def on_slurm(
    folder: Path, work: Callable[[SlurmBackend], Awaitable[None]], partitions: str = ONE_PARTITION
) -> None:
    """Do something on a Slurm of its own; standbys are the nodes whose name starts with s."""
    absent = missing()
    if absent:
        pytest.skip(f"not installed: {absent}")
    roles = {n: NodeRole.STANDBY if n.startswith("s") else NodeRole.ACTIVE for n in NAMES}
    nodes = {name: Node(name, "127.0.0.1", role=role) for name, role in roles.items()}
    (folder / "logs").mkdir()

    async def run() -> None:
        await work(SlurmBackend(folder / "s.json", LocalTransport(), Inventory(nodes), 8))

    with slurm_cluster(folder, NAMES, partitions):
        asyncio.run(run())


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
    assert seconds < REQUEUE_S


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


def ask(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.mark.slurm
def test_slurm_s_own_mark_is_no_cordon(tmp_path: Path) -> None:
    """A node that Slurm lost returns by itself when it answers; a drained one stays away."""

    async def lost_and_found(backend: SlurmBackend) -> None:
        ask("scontrol", "update", "NodeName=n[1-2]", "State=DOWN", "Reason=Not responding")
        assert {n: c.lasting for n, c in (await backend.cordons()).items()} == {
            "n1": False,
            "n2": False,
        }
        await backend.cordon(["n2"], "brctl:R-1", "V-1 dead", AT)
        ask("scontrol", "reconfigure")  # every node registers again
        deadline = monotonic() + TIMEOUT_S
        while "n1" in (found := await backend.cordons()):
            assert monotonic() < deadline, "n1 did not return"
            await asyncio.sleep(0.1)
        assert [(c.owner, c.reason, c.lasting) for c in found.values()] == [
            ("brctl:R-1", "V-1 dead", True)
        ]
        await backend.uncordon(["n2"])
        assert await backend.cordons() == {}

    on_slurm(tmp_path, lost_and_found)


@pytest.mark.slurm
def test_a_dead_node_does_not_keep_the_job_in_slurm(tmp_path: Path) -> None:
    """Every rank is gone and Slurm still holds the job: it counts as not stopped until it is.

    Then it stays COMPLETING on the dead node for minutes; the next start does not wait for that,
    which is where `scontrol requeue` with `starttime=now` is lost.
    """

    async def die(backend: SlurmBackend) -> None:
        job = swapped_job(tmp_path)
        assert (await backend.start_job(job, "", "R-1")).failed == {}
        frozen = freeze(tmp_path, "n2", rank=2)
        try:
            for rank in range(3):
                os.kill(rank_pid(tmp_path, rank), signal.SIGKILL)
            state = await without_ranks(backend, job)
            assert state.held.endswith(" RUNNING")
            await backend.cordon(["n2"], "brctl:R-2", "dead", AT)
            await backend.stop_job(job, 1.0)
            assert (await backend.job_status(job)).held == ""
            moved = await backend.replace_nodes(job, {"n2": "s1"})
            began = monotonic()
            assert (await backend.start_job(moved, "/c", "R-2")).failed == {}
            assert monotonic() - began < REQUEUE_S
            states = ask("squeue", "-h", "-O", "State:|").split("|")
            assert {state.strip() for state in states} - {""} == {"COMPLETING", "RUNNING"}
            await backend.stop_job(moved, 1.0)
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)

    on_slurm(tmp_path, die)


async def without_ranks(backend: SlurmBackend, job: Job) -> JobRunState:
    """The job once none of its ranks runs any more."""
    deadline = monotonic() + TIMEOUT_S
    while (state := await backend.job_status(job)).alive:
        assert monotonic() < deadline, "the ranks do not end"
        await asyncio.sleep(0.05)
    return state


def freeze(folder: Path, node: str, rank: int) -> tuple[int, ...]:
    """Stop a node's slurmd and the daemon of its step, as a power-off does: nobody says goodbye."""
    supervisor = parent(rank_pid(folder, rank))
    pids = (int((folder / f"slurmd-{node}.pid").read_text()), parent(supervisor))
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    return pids


def rank_pid(folder: Path, rank: int) -> int:
    record = json.loads((folder / "logs" / f"rank-{rank:05d}.process.json").read_text())
    return int(record["pid"])


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.slurm
def test_slurm_never_queues_a_job_of_brctl_again(tmp_path: Path) -> None:
    """Neither by itself when a node fails nor by hand: a requeued job waits for two minutes."""

    async def fail(backend: SlurmBackend) -> None:
        job = swapped_job(tmp_path)
        assert (await backend.start_job(job, "", "R-1")).failed == {}
        (entry,) = await backend._queued(job)
        found = await asyncio.to_thread(load_slurm, ())
        assert found.groups[f"job:{entry.id}"] == found.groups["job:brctl-swapped"]
        assert found.groups[f"job:{entry.id}"] == ("n1", "n2", "n3")
        with pytest.raises(subprocess.CalledProcessError):
            ask("scontrol", "requeue", entry.id)
        ask("scontrol", "update", "NodeName=n1", "State=DOWN", "Reason=test")
        assert (await without_ranks(backend, job)).held == ""
        moved = await backend.replace_nodes(job, {"n1": "s1"})
        began = monotonic()
        assert (await backend.start_job(moved, "/c", "R-2")).failed == {}
        assert monotonic() - began < REQUEUE_S
        await backend.stop_job(moved, 1.0)

    on_slurm(tmp_path, fail)


@pytest.mark.slurm
def test_another_user_s_job_of_the_same_name_is_not_ours(tmp_path: Path) -> None:
    """Neither its name nor our run's mark in its comment make it so: it is not seen, nor ended."""

    async def beside(backend: SlurmBackend) -> None:
        job = swapped_job(tmp_path)
        taken = ("--job-name=brctl-swapped", "--comment=R-1", "--uid=65534", "--hold")
        theirs = ask("sbatch", "--parsable", *taken, "--chdir=/", "--wrap=sleep 600")
        assert (await backend.job_status(job)).held == ""
        assert (await backend.start_job(job, "", "R-1")).failed == {}
        assert len(await backend._queued(job)) == 1
        await backend.stop_job(job, 2.0)
        assert (await backend.job_status(job)).held == ""
        assert ask("squeue", "-h", "-j", theirs.strip(), "-o", "%u").strip() == "nobody"

    on_slurm(tmp_path, beside)


@pytest.mark.slurm
def test_a_standby_of_another_partition_is_refused_before_the_job_is_stopped(
    tmp_path: Path,
) -> None:
    """A job never spans two partitions, so such a standby is of no use to any job."""
    split = "PartitionName=train Nodes=n[1-3] Default=YES\nPartitionName=spare Nodes=s1"

    async def reserve(backend: SlurmBackend) -> None:
        with pytest.raises(UnavailableError, match="s1 shares no Slurm partition"):
            await backend.reserve("s1", "brctl:R-1", AT)
        assert await backend.reservations() == {}

    on_slurm(tmp_path, reserve, split)
