"""srun as transport, on a real Slurm whose nodes can really lose their power."""

import asyncio
import contextlib
import os
import signal
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import pytest

from brctl.fanout.client_process import ClientProcess
from brctl.fanout.contract import Streams
from brctl.fanout.gather import gather
from brctl.fanout.srun.messages import ended_by_itself, meaning, split_stderr
from brctl.fanout.srun.nodes import SrunRoute, parse_jobs, routes
from brctl.fanout.srun.transport import SrunTransport
from brctl.lab.cluster import Lab
from brctl.lab.spec import Isolation, LabSpec
from brctl.library.config import SshSettings
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Node
from tests.fakes import slurm_cluster
from tests.fakes.slurm_lab import ask_slurm, idle, missing, slurm_lab
from tests.own_processes import pids_with
from tests.timeouts import TIMEOUT_S

SSH = SshSettings(transport="srun", connect_timeout_s=TIMEOUT_S, login_timeout_s=TIMEOUT_S)
HURRIED = SshSettings(transport="srun", connect_timeout_s=15.0, login_timeout_s=15.0)
"""For nodes without power, which are waited for that long."""

STATUS = Command(("sh", "-c", "echo out; exit 3"), deadline_s=TIMEOUT_S)

SINFO = """\
n1|debug|idle|gpu:h100:8(S:0-1),nvme:1|root|none
n1|train*|idle|gpu:h100:8(S:0-1),nvme:1|root|none
n2|train*|mixed|(null)|root|none
n3|train*|allocated|(null)|root|none
n4|train*|idle*|(null)|root|none
n5|train*|drained|(null)|ann|fan | loud
n6|train*|draining|(null)|ann|fan
n7|train*|down*|(null)|root|Not responding
n8|train*|completing|(null)|root|none
n9|train*|planned|(null)|root|none
garbage
"""
SQUEUE = "7|1001|ann|n[2,6]\n8|0|root|n3\ngarbage\n9|0|root|n[9-1]\n"


def test_the_route_to_a_node_is_what_slurm_allows() -> None:
    """A step in our own job, a short allocation, or one sentence about why neither."""
    found = routes(SINFO, parse_jobs(SQUEUE), uid=1001)
    assert found["n1"] == SrunRoute(partition="train", gres="gpu:h100:8,nvme:1")
    assert found["n2"] == found["n6"] == SrunRoute(job="7")
    actual = {name: (route.outcome, route.why) for name, route in found.items() if route.outcome}
    assert actual == {
        "n3": (Outcome.NOT_AVAILABLE, "busy: job 8 of root runs there"),
        "n4": (Outcome.UNREACHABLE, "idle* in Slurm: none"),
        "n5": (Outcome.NOT_AVAILABLE, "drained in Slurm by ann: fan | loud"),
        "n7": (Outcome.UNREACHABLE, "down* in Slurm: Not responding"),
        "n9": (Outcome.NOT_AVAILABLE, "planned in Slurm"),
    }
    assert found["n8"] == SrunRoute(partition="train")  # srun waits for it


def test_messages_of_srun_are_told_from_those_of_the_command() -> None:
    """The exit status counts only when srun says that the task ended by itself."""
    raw = b"mark\nsrun: error: n1: task 0: Exited with exit code 3\nmine: error\nslurmstepd-n1: x\n"
    stderr, actual = split_stderr(raw, b"mark")
    assert stderr == b"mine: error\n"
    assert ended_by_itself(3, actual)
    assert ended_by_itself(0, "")
    assert not ended_by_itself(1, "srun: error: Unable to allocate resources: busy")
    assert not ended_by_itself(137, "srun: error: Node failure on n1\nsrun: task 0: Killed")
    assert meaning("srun: error: Unable to allocate resources: Requested nodes are busy")[0] is (
        Outcome.NOT_AVAILABLE
    )
    assert meaning("srun: error: Task launch for StepId=5.0 failed on node n3: x")[0] is (
        Outcome.UNREACHABLE
    )


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Four nodes and a drained standby."""
    why_not = missing()
    if why_not:
        pytest.skip(f"no Slurm lab here: {why_not}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        spec = LabSpec(nodes=4, standbys=1, gpus=1, isolation=Isolation.NETNS)
        with slurm_lab(tmp_path_factory.mktemp("srun") / "lab", spec) as built:
            yield built


@pytest.fixture
async def srun(lab: Lab) -> AsyncIterator[SrunTransport]:
    """A transport; what it held in Slurm must be free again once it is closed."""
    async with on_idle_nodes(SSH) as transport:
        yield transport


@asynccontextmanager
async def on_idle_nodes(ssh: SshSettings) -> AsyncIterator[SrunTransport]:
    # Jobs of the test before may still be completing there.
    await idle("n1", "n2", "n3", "n4")
    before = ask_slurm("squeue", "-h", "-o", "%A")
    transport = SrunTransport(ssh)
    yield transport
    await transport.close()
    deadline = monotonic() + TIMEOUT_S
    while left := ours_in_the_queue():
        assert monotonic() < deadline, f"still in the queue: {left} (before: {before})"
        await asyncio.sleep(0.1)


def ours_in_the_queue() -> list[str]:
    listed = ask_slurm("squeue", "-h", "-t", "R,PD", "-o", "%j %A %N").splitlines()
    return [line for line in listed if line.startswith("brctl-")]


async def ask(transport: SrunTransport, names: str, command: Command) -> dict[str, CommandResult]:
    nodes = [Node(name, "unused") for name in names.split()]
    stream = gather(transport, nodes, lambda _: command, limit=8)
    return {answer.node: answer async for answer in stream}


@pytest.mark.slurm
@pytest.mark.netns
async def test_every_node_ends_in_one_outcome_and_says_why(srun: SrunTransport) -> None:
    """Idle, drained, unknown, somebody else's: asked only where Slurm lets us."""
    other = await asyncio.create_subprocess_exec(
        "srun", "--uid=nobody", "-w", "n2", "-D", "/", "sleep", "99"
    )
    try:
        await running("n2")
        found = await ask(srun, "n1 n2 n5 n77", STATUS)
    finally:
        other.terminate()
        await other.wait()
    actual = {name: (answer.outcome, answer.exit_status) for name, answer in found.items()}
    assert actual == {
        "n1": (Outcome.ANSWERED, 3),
        "n2": (Outcome.NOT_AVAILABLE, None),
        "n5": (Outcome.NOT_AVAILABLE, None),
        "n77": (Outcome.UNREACHABLE, None),
    }
    assert found["n1"].stdout == b"out\n"
    assert "of nobody runs there" in found["n2"].detail
    assert found["n5"].detail == "n5: drained in Slurm by root: brctl standby"
    assert "n77" in found["n77"].detail


@pytest.mark.slurm
@pytest.mark.netns
async def test_a_node_that_a_job_is_just_leaving_is_waited_for(srun: SrunTransport) -> None:
    """Slurm calls it completing, as after each of our own commands; soon it is idle."""
    stubborn = await asyncio.create_subprocess_exec(
        "srun", "--uid=nobody", "-w", "n2", "-D", "/", "sh", "-c", "trap '' TERM; sleep 99"
    )
    await running("n2")
    ask_slurm("scancel", "-w", "n2")
    await running("n2", jobs=False)
    found = await ask(srun, "n2", STATUS)
    await stubborn.wait()
    assert (found["n2"].outcome, found["n2"].exit_status) == (Outcome.ANSWERED, 3), found


@pytest.mark.slurm
@pytest.mark.netns
async def test_a_node_with_our_own_job_is_asked_beside_it(srun: SrunTransport) -> None:
    """The job takes the whole node, and the question is a step of it that disturbs nothing."""
    async with our_own_job() as job:
        asked = Command(("sh", "-c", "echo $SLURM_JOB_ID $SLURMD_NODENAME"), deadline_s=TIMEOUT_S)
        assert (await ask(srun, "n2", asked))["n2"].stdout.split() == [job.encode(), b"n2"]
        assert ask_slurm("squeue", "-h", "-j", job, "-o", "%T").strip() == "RUNNING"


@pytest.mark.slurm
@pytest.mark.netns
async def test_a_held_connection_is_a_step_of_our_own_job_and_ends_with_its_input(
    srun: SrunTransport, tmp_path: Path
) -> None:
    """Both ways while it runs; an idle node is not taken from the queue for it."""
    heard, came = bytearray(), asyncio.Event()

    def on_output(piece: bytes, is_stderr: bool) -> None:
        if not is_stderr:
            heard.extend(piece)
            came.set()

    async def lines() -> AsyncIterator[bytes]:
        for line in (b"one\n", b"two\n"):
            yield line
            while line not in heard:
                came.clear()
                await came.wait()

    held = Command(("sh", "-c", f"cat; echo ended > {tmp_path}/ended"), deadline_s=TIMEOUT_S)
    streams = Streams(lines, on_output, held=True)
    idle_node = await srun.stream(Node("n1", "x"), held, streams)
    assert idle_node.outcome is Outcome.NOT_AVAILABLE
    assert "no job of ours runs there" in idle_node.detail
    async with our_own_job():
        later = SrunTransport(SSH)  # the fixture's may still know the queue of before
        answer = await later.stream(Node("n2", "x"), held, streams)
        await later.close()
    assert (answer.outcome, answer.exit_status) == (Outcome.ANSWERED, 0), answer
    assert (bytes(heard), answer.stdout) == (b"one\ntwo\n", b"")
    assert (tmp_path / "ended").exists()


@asynccontextmanager
async def our_own_job() -> AsyncIterator[str]:
    """The number of a job that runs on all of n2."""
    job = ask_slurm(
        "sbatch", "--parsable", "--exclusive", "-w", "n2", "-D", "/", "-o", "/dev/null",
        "--wrap=sleep 3600",
    ).strip()  # fmt: skip
    try:
        await running("n2")
        yield job
    finally:
        ask_slurm("scancel", job)


async def running(node: str, *, jobs: bool = True) -> None:
    """Wait until a job runs there, or none does any more."""
    deadline = monotonic() + TIMEOUT_S
    while bool(ask_slurm("squeue", "-h", "-t", "R", "-w", node, "-o", "%A")) != jobs:
        assert monotonic() < deadline, f"no job starts on {node}" if jobs else f"{node} is held"
        await asyncio.sleep(0.05)


async def begun(*files: Path) -> None:
    """Until the commands that touch these files spoke, and some time for their words to travel."""
    started = monotonic()
    while not all(path.exists() for path in files):
        missing_files = [path.name for path in files if not path.exists()]
        assert monotonic() - started < TIMEOUT_S, f"not begun: {missing_files}"
        await asyncio.sleep(0.05)
    # On a busy machine longer, as it was until the command had begun.
    await asyncio.sleep(max(0.7, min(monotonic() - started, 5.0)))


@pytest.mark.slurm
@pytest.mark.netns
async def test_our_environment_stays_here(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """What srun does by default would carry tokens to every node."""
    monkeypatch.setenv("BRCTL_TEST_SECRET", "s3cret")
    await idle("n1")
    transport = SrunTransport(SSH)
    found = await ask(transport, "n1", Command(("env",), deadline_s=TIMEOUT_S))
    await transport.close()
    assert found["n1"].outcome is Outcome.ANSWERED, found["n1"].detail
    assert b"PATH=" in found["n1"].stdout
    assert b"s3cret" not in found["n1"].stdout


@pytest.mark.slurm
@pytest.mark.netns
async def test_a_command_that_slurm_ends_died(srun: SrunTransport, tmp_path: Path) -> None:
    """The command's end was never heard of, so it is no answer; what it said is kept."""
    words = f"echo half; touch {tmp_path}/n1; sleep 600"
    asked = asyncio.create_task(ask(srun, "n1", Command(("sh", "-c", words), deadline_s=900)))
    await begun(tmp_path / "n1")
    ask_slurm("scontrol", "update", "NodeName=n1", "State=DOWN", "Reason=test")
    try:
        answer = (await asked)["n1"]
    finally:
        ask_slurm("scontrol", "update", "NodeName=n1", "State=RESUME")
        await idle("n1")
    assert (answer.outcome, answer.exit_status) == (Outcome.DIED, None)
    assert answer.stdout == b"half\n"
    assert answer.seconds < TIMEOUT_S


@pytest.mark.slurm
@pytest.mark.netns
async def test_cancelling_gives_the_node_back(srun: SrunTransport) -> None:
    """Ctrl-C ends the command and its allocation; the fixture looks into the queue."""
    hours = Command(("sleep", "7200"), deadline_s=7200)
    asked = asyncio.create_task(srun.run(Node("n1", "x"), hours))
    await running("n1")
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked


@pytest.mark.slurm
@pytest.mark.netns
async def test_a_killed_srun_gives_the_node_back(srun: SrunTransport, tmp_path: Path) -> None:
    """Slurm itself would take the allocation back only after its time limit, here two hours."""
    hours = Command(("sh", "-c", f"touch {tmp_path}/begun; sleep 7200"), deadline_s=7200)
    asked = asyncio.create_task(srun.run(Node("n1", "x"), hours))
    await begun(tmp_path / "begun")
    (name,) = [line.split()[0] for line in ours_in_the_queue()]
    for pid in pids_with(f"--job-name={name}"):
        with contextlib.suppress(ProcessLookupError):  # Its helper ends with it.
            os.kill(pid, signal.SIGKILL)
    assert (await asked).outcome is Outcome.DIED


@pytest.mark.slurm
@pytest.mark.netns
async def test_a_node_that_loses_its_power_costs_the_others_nothing(
    lab: Lab, tmp_path: Path
) -> None:
    """One dies in the middle of its command, one was dead before Slurm could notice."""
    words = (
        f"echo begun; touch {tmp_path}/$SLURMD_NODENAME; while ! test -e {tmp_path}/go; do"
        " sleep 0.05; done; echo $SLURMD_NODENAME"
    )
    command = Command(("sh", "-c", words), deadline_s=30)
    async with on_idle_nodes(HURRIED) as srun:
        lab.break_node("node-dead", "n3")
        asked = asyncio.create_task(ask(srun, "n2 n3 n4", command))
        await begun(tmp_path / "n2", tmp_path / "n4")
        await asyncio.to_thread(lab.break_node, "node-dead", "n4")
        (tmp_path / "go").touch()
        found = await asked
    assert (found["n2"].outcome, found["n2"].stdout) == (Outcome.ANSWERED, b"begun\nn2\n")
    assert found["n2"].seconds < max(found["n3"].seconds, found["n4"].seconds)
    assert found["n3"].outcome in (Outcome.UNREACHABLE, Outcome.CONNECT_TIMED_OUT)
    assert found["n4"].outcome in (Outcome.COMMAND_TIMED_OUT, Outcome.DIED)
    assert found["n4"].stdout == b"begun\n"
    assert all(found[name].exit_status is None for name in ("n3", "n4"))


@pytest.mark.slurm
async def test_an_idle_node_is_taken_with_all_its_gpus(tmp_path: Path) -> None:
    """A command that is shown a part of a node reports the rest as lost."""
    absent = slurm_cluster.missing()
    if absent or os.geteuid() != 0:
        pytest.skip(f"needs root and {absent}")
    for number in range(4):
        os.mknod(tmp_path / f"gpu{number}", stat.S_IFCHR, os.makedev(1, 3))
    (tmp_path / "gres.conf").write_text(f"Name=gpu File={tmp_path}/gpu[0-3]\n")
    with slurm_cluster.slurm_cluster(tmp_path, ["n1"], node_options="Gres=gpu:4"):
        transport = SrunTransport(SSH)
        found = await ask(
            transport,
            "n1",
            Command(("sh", "-c", "echo $CUDA_VISIBLE_DEVICES"), deadline_s=TIMEOUT_S),
        )
        await transport.close()
    assert found["n1"].stdout == b"0,1,2,3\n"


@pytest.mark.parametrize(
    ("srun", "cancelled"),
    [("echo srun: error: Unable to allocate resources >&2; exit 1", False),
     ("kill -KILL $$", True)],
)  # fmt: skip
async def test_only_an_srun_that_was_cut_short_may_leave_an_allocation(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    srun: str,
    cancelled: bool,
) -> None:
    """A refused one has none to cancel; one that stays because scancel failed is said."""
    programs = {
        "sinfo": "echo 'n1|train*|idle|(null)|root|none'", "squeue": ":", "srun": srun,
        "scancel": f"echo $1 >> {tmp_path}/cancelled; echo no controller >&2; exit 1",
    }  # fmt: skip
    for name, words in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{words}\n")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    transport = SrunTransport(SSH)
    await transport.run(Node("n1", "x"), STATUS)
    await transport.close()
    assert (tmp_path / "cancelled").exists() == cancelled
    assert ("of n1 may stay until its time limit: scancel: no controller" in caplog.text) == (
        cancelled
    )


async def test_an_srun_given_up_while_it_starts_may_hold_an_allocation() -> None:
    """Its process runs before asyncio has its pipes, and Slurm is quick."""
    for turns in range(1, 8):
        process = ClientProcess(b"mark", 1)
        starting = asyncio.ensure_future(process.start(("sleep", "60"), dict(os.environ)))
        for _ in range(turns):
            await asyncio.sleep(0)
        starting.cancel()
        await asyncio.wait([starting])
        assert process.cut_short
        await process.end()
    process = ClientProcess(b"mark", 1)
    with pytest.raises(OSError, match="nowhere"):
        await process.start(("/nowhere/srun",), {})
    assert not process.cut_short


async def test_without_slurm_no_node_is_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be asked is not broken."""
    monkeypatch.setenv("PATH", str(tmp_path))
    transport = SrunTransport(SSH)
    answer = (await ask(transport, "n1", STATUS))["n1"]
    await transport.close()
    assert answer.outcome is Outcome.NOT_AVAILABLE
    assert "sinfo" in answer.detail
