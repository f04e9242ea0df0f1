"""Nodes with namespaces: cables that can be cut, power that can fail, disks that can fill."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest

from brctl.lab.cluster import Lab
from tests.lab.ssh import connect, run
from tests.timeouts import TIMEOUT_S

pytestmark = [pytest.mark.netns, pytest.mark.ssh]


@pytest.fixture(autouse=True)
def healed(netns_lab: Lab) -> Iterator[None]:
    yield
    netns_lab.heal()


async def test_each_node_is_a_machine_of_its_own(netns_lab: Lab) -> None:
    """Own hostname, own processes, own network interface, own kernel log."""
    for name in ("n1", "n3"):
        _, text = await run(netns_lab, name, "hostname; echo $BRCTL_LAB_NODE; cat /proc/1/comm")
        assert text.split() == [name, name, "sh"]
    _, text = await run(netns_lab, "n1", "ls /proc | grep -c '^[0-9]*$'; ip -o -4 addr show eth0")
    assert int(text.splitlines()[0]) < 15
    assert netns_lab.nodes["n1"].address in text
    netns_lab.break_node("gpu-ecc", "n1")
    assert " 48, " in (await run(netns_lab, "n1", "cat /dev/kmsg"))[1]
    assert " 48, " not in (await run(netns_lab, "n2", "cat /dev/kmsg"))[1]


async def test_nodes_reach_each_other_by_name(netns_lab: Lab) -> None:
    """The nodes share a network and know each other's names."""
    command = "exec 3<>/dev/tcp/n2/22 && head -c 4 <&3"
    assert await run(netns_lab, "n1", f"bash -c '{command}'") == (0, "SSH-")


async def test_a_dead_node_goes_silent(netns_lab: Lab) -> None:
    """Nobody says goodbye: a running command just ends without status, new ones find no host."""
    connection = await connect(netns_lab, "n2")
    process = await connection.create_process("echo started; sleep 600")
    assert await process.stdout.readline() == "started\n"
    netns_lab.break_node("node-dead", "n2")
    connection.set_keepalive(0.2, 2)
    done = await asyncio.wait_for(process.wait(), TIMEOUT_S)
    assert done.exit_status is None
    with pytest.raises((TimeoutError, OSError)) as failure:
        await connect(netns_lab, "n2", login_timeout_s=1)
    assert not isinstance(failure.value, ConnectionRefusedError)
    netns_lab.heal("n2")
    assert await run(netns_lab, "n2", "hostname") == (0, "n2\n")


async def test_a_cut_cable_leaves_the_node_running(netns_lab: Lab) -> None:
    """Nothing passes while the cable is cut, and what ran on the node still runs afterwards."""
    _, text = await run(netns_lab, "n1", "setsid sleep 60 >&- 2>&- & echo $!")
    netns_lab.break_node("link-cut", "n1")
    with pytest.raises((TimeoutError, OSError)):
        await connect(netns_lab, "n1", login_timeout_s=0.7)
    netns_lab.heal("n1")
    assert (await run(netns_lab, "n1", f"kill {text.strip()}"))[0] == 0


async def test_a_slow_cable_is_slow_for_this_node_only(netns_lab: Lab) -> None:
    """Two megabytes take most of a second at 20 Mbit/s, and far less to the neighbour."""
    netns_lab.break_node("link-slow", "n2")
    slow_s = await _time_to_fetch(netns_lab, "n2")
    assert slow_s > 0.6
    async with asyncio.timeout(TIMEOUT_S):
        while await _time_to_fetch(netns_lab, "n1") >= slow_s / 2:
            pass  # this machine had no time, which a slow cable would not end


async def test_a_full_disk_refuses_writes(netns_lab: Lab) -> None:
    """The node's own disk is full; its neighbour's, mounted at the same path, is not."""
    netns_lab.break_node("disk-full", "n1")
    write = "dd if=/dev/zero of=$BRCTL_LAB_SCRATCH/more bs=64k count=1"
    assert (await run(netns_lab, "n1", write))[0] == 1
    assert (await run(netns_lab, "n2", write))[0] == 0
    netns_lab.heal("n1")
    assert (await run(netns_lab, "n1", write))[0] == 0


async def test_a_frozen_node_keeps_its_processes(netns_lab: Lab) -> None:
    """Frozen, TCP connects and nothing follows; thawed, everything goes on."""
    netns_lab.break_node("node-frozen", "n2")
    with pytest.raises((TimeoutError, asyncssh.Error)):
        await connect(netns_lab, "n2", login_timeout_s=0.5)
    netns_lab.heal("n2")
    assert await run(netns_lab, "n2", "hostname") == (0, "n2\n")


async def test_a_node_that_refuses_ssh_keeps_its_sessions(netns_lab: Lab) -> None:
    """The listener is gone, the session is not."""
    async with await connect(netns_lab, "n1") as connection:
        process = await connection.create_process("read line; echo got $line")
        netns_lab.break_node("ssh-refused", "n1")
        with pytest.raises(ConnectionRefusedError):
            await connect(netns_lab, "n1")
        process.stdin.write("this\n")
        assert await asyncio.wait_for(process.stdout.readline(), TIMEOUT_S) == "got this\n"
    netns_lab.heal("n1")
    assert await run(netns_lab, "n1", "true") == (0, "")


async def test_the_lab_adds_no_mount_to_this_machine(netns_lab: Lab) -> None:
    """Namespaces live in the node's own processes, so nothing is mounted here for them."""
    assert str(netns_lab.paths.root) not in _own_mounts()
    assert str(netns_lab.paths.scratch) in (await run(netns_lab, "n1", "cat /proc/mounts"))[1]


def _own_mounts() -> str:
    return Path("/proc/self/mountinfo").read_text()


async def _time_to_fetch(lab: Lab, name: str) -> float:
    async with await connect(lab, name) as connection:
        began = time.monotonic()
        done = await connection.run("head -c 2000000 /dev/zero", encoding=None)
        took_s = time.monotonic() - began
    assert len(done.stdout or b"") == 2_000_000
    return took_s
