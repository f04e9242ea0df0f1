"""Nodes without namespaces: real SSH, and faults that need no privileges."""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator

import asyncssh
import pytest

from brctl.lab.cluster import Lab
from brctl.lab.nvml.state import LOST, read_state
from brctl.lab.processes import is_stopped
from brctl.lab.site import FaultSite
from brctl.model.errors import UsageError
from tests.lab.ssh import connect, run
from tests.timeouts import TIMEOUT_S


@pytest.fixture(autouse=True)
def healed(lab: Lab) -> Iterator[None]:
    yield
    lab.heal()


async def test_each_node_answers_as_itself(lab: Lab) -> None:
    """Three nodes, three host keys, one command each."""
    for name in ("n1", "n2", "n3"):
        assert await run(lab, name, "echo $BRCTL_LAB_NODE") == (0, f"{name}\n")


async def test_exit_status_input_and_output_are_real(lab: Lab) -> None:
    """A command gets its input to the end and its status comes back, a signal as a signal."""
    assert await run(lab, "n1", "wc -c; exit 7", stdin="x" * 300_000) == (7, "300000\n")
    async with await connect(lab, "n1") as connection:
        killed = await connection.run("kill -9 $$")
    assert killed.exit_signal is not None
    assert killed.exit_signal[0] == "KILL"


async def test_a_node_with_another_key_is_not_trusted(lab: Lab) -> None:
    """Logging into n2's address with n1's key on record fails: host keys are checked."""
    line = lab.paths.known_hosts.read_text().splitlines()[0]
    address, rest = lab.nodes["n2"].address, line.split(" ", 1)[1]
    with pytest.raises(asyncssh.HostKeyNotVerifiable):
        await asyncssh.connect(
            address,
            lab.nodes["n2"].port,
            known_hosts=asyncssh.import_known_hosts(f"[{address}]:{lab.nodes['n2'].port} {rest}\n"),
            client_keys=[str(lab.paths.client_key)],
            config=[],
        )


async def test_a_dead_node_takes_its_commands_along(lab: Lab) -> None:
    """Power-off ends a running command without exit status, then connections are refused."""
    async with await connect(lab, "n2") as connection:
        process = await connection.create_process("echo started; sleep 600")
        assert await process.stdout.readline() == "started\n"
        lab.break_node("node-dead", "n2")
        done = await asyncio.wait_for(process.wait(), TIMEOUT_S)
    assert done.exit_status is None
    with pytest.raises(ConnectionRefusedError):
        await connect(lab, "n2")
    assert not next(node for node in lab.status().nodes if node.name == "n2").is_on


async def test_a_dead_node_boots_again(lab: Lab) -> None:
    """Heal is a new machine: it answers and has no faults."""
    lab.break_node("node-dead", "n2")
    assert lab.heal("n2") == ("n2",)
    assert await run(lab, "n2", "true") == (0, "")
    assert all(not node.faults for node in lab.status().nodes)


async def until(happened: Callable[[], bool]) -> None:
    """Wait for something that a busy machine may take seconds to do."""
    async with asyncio.timeout(TIMEOUT_S):
        while not happened():  # noqa: ASYNC110 - a file on disk sets no event
            await asyncio.sleep(0.02)


async def test_a_detached_process_dies_with_its_node(lab: Lab) -> None:
    """What a session left behind in a session of its own is part of the node."""
    marker = lab.paths.node("n1").home / "alive"
    await run(
        lab, "n1", f"setsid sh -c 'while :; do echo >> {marker}; sleep 0.05; done' >&- 2>&- &"
    )
    await until(marker.exists)
    lab.break_node("node-dead", "n1")
    size = marker.stat().st_size
    await asyncio.sleep(0.3)
    assert marker.stat().st_size == size


async def test_a_frozen_node_takes_connections_and_says_nothing(lab: Lab) -> None:
    """The kernel answers, the server does not; after the thaw it does."""
    lab.break_node("node-frozen", "n1")
    with pytest.raises((TimeoutError, asyncssh.Error)):
        await connect(lab, "n1", login_timeout_s=0.5)
    lab.heal("n1")
    assert await run(lab, "n1", "true") == (0, "")


async def test_a_node_that_refuses_ssh_goes_on_working(lab: Lab) -> None:
    """New connections are refused while a running command is not disturbed."""
    async with await connect(lab, "n2") as connection:
        process = await connection.create_process("read line; echo got $line")
        lab.break_node("ssh-refused", "n2")
        with pytest.raises(ConnectionRefusedError):
            await connect(lab, "n2")
        process.stdin.write("this\n")
        assert await asyncio.wait_for(process.stdout.readline(), TIMEOUT_S) == "got this\n"
    lab.heal("n2")
    assert await run(lab, "n2", "true") == (0, "")


async def test_a_skewed_clock_is_seen_by_programs(lab: Lab) -> None:
    """The node's wall clock is half a minute ahead; its monotonic clock is true."""
    script = "import time; print(time.time(), time.monotonic())"

    async def ahead_s() -> tuple[float, float]:
        """How far its two clocks are ahead of ours, as long as it takes to ask at most."""
        began = time.time(), time.monotonic()
        _, text = await run(lab, "n1", command)
        wall, monotonic = map(float, text.split())
        asked_s.append(time.monotonic() - began[1])
        return wall - began[0], monotonic - began[1]

    asked_s: list[float] = []
    command = f"{lab.record.spec.python} -I -S -c '{script}'"
    lab.break_node("clock-skew", "n1")
    wall_s, monotonic_s = await ahead_s()
    assert 28 < wall_s < 32 + asked_s[0]
    assert -1 < monotonic_s < 1 + asked_s[0]
    lab.heal("n1")
    wall_s, _ = await ahead_s()
    assert -2 < wall_s < 2 + asked_s[1]


async def test_a_lost_gpu_shows_in_the_driver_and_in_the_kernel_log(lab: Lab) -> None:
    """The broken GPU's address is in the Xid 79 line; NVML answers error 15 for its slot."""
    broken = lab.break_node("gpu-lost", "n1", gpu=4)
    _, log = await run(lab, "n1", "cat $BRCTL_LAB_KERNEL_LOG")
    assert "3,11," in log
    assert "NVRM: Xid (PCI:0000:9a:00): 79, " in log
    assert read_state(lab.paths.node("n1").nvml)["gpu4.*"] == LOST
    assert broken.subject.removeprefix("gpu:") in log
    assert "Xid" not in (await run(lab, "n2", "cat $BRCTL_LAB_KERNEL_LOG"))[1]


def test_what_makes_no_sense_is_refused(lab: Lab) -> None:
    """Unknown faults, nodes and GPUs, and faults that take namespaces, change nothing."""
    for fault, node, gpu in (
        ("gpu-los", "n1", None),
        ("gpu-lost", "n9", None),
        ("gpu-lost", "n1", 8),
        ("link-cut", "n1", None),
    ):
        with pytest.raises(UsageError):
            lab.break_node(fault, node, gpu=gpu)
    assert lab.record.faults == {}


async def test_a_stopped_rank_stands_still_and_goes_on_after_the_heal(lab: Lab) -> None:
    """Only its trainers stop; the node itself still answers."""
    program = f"{sys.executable} -c 'import time; print(1, flush=True); time.sleep(3600)'"
    async with await connect(lab, "n1") as connection:
        process = await connection.create_process(f"exec {program} brctl.training")
        assert await process.stdout.readline() == "1\n"
        lab.break_node("rank-stop", "n1")
        (pid,) = FaultSite(lab.record, lab.paths, "n1").trainers()
        await until(lambda: is_stopped(pid))
        assert await run(lab, "n1", "true") == (0, "")
        lab.heal("n1")
        await until(lambda: not is_stopped(pid))
        process.kill()
        await process.wait()


@pytest.mark.parametrize("fault", ["rank-stop", "loader-killed"])
def test_a_process_that_does_not_run_cannot_be_broken(lab: Lab, fault: str) -> None:
    """It is refused, and the lab does not claim to be broken."""
    with pytest.raises(UsageError, match="n2"):
        lab.break_node(fault, "n2")
    assert lab.record.faults == {}
