"""A fan-out split over processes: the same answers, and a killed process is told as what it is."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from brctl.fanout.asyncssh.transport import AsyncsshTransport
from brctl.fanout.choose import open_transport
from brctl.fanout.gather import gather
from brctl.fanout.processes import spread_transport
from brctl.fanout.processes.spread_transport import SpreadTransport
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.errors import ConfigError
from brctl.model.inventory import Node
from tests.contract.transport_sites import SICK_KINDS, Site, is_patient, open_site
from tests.own_processes import runs
from tests.timeouts import TIMEOUT_S

ECHO = Command(("sh", "-c", "cat; exit 3"), b"hello")


@dataclass
class ShardedSite:
    """A site asked through two processes."""

    site: Site
    transport: SpreadTransport

    def nodes(self, count: int) -> list[Node]:
        good = self.site.good
        return [replace(good, name=f"n{number}") for number in range(count)]

    async def ask(self, count: int, command: Command, limit: int = 16) -> list[CommandResult]:
        answers = gather(self.transport, self.nodes(count), lambda _: command, limit=limit)
        return [answer async for answer in answers]


@pytest.fixture
async def split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[ShardedSite]:
    monkeypatch.setattr(spread_transport, "SPREAD_OVER", 3)
    async with open_site(tmp_path, real_sshd=False, patient=is_patient(request)) as site:
        ssh = replace(site.ssh, transport="asyncssh", shards=2)
        transport = open_transport(ssh)
        assert isinstance(transport, SpreadTransport)
        yield ShardedSite(site, transport)
        await transport.close()


async def test_each_node_is_asked_once_by_one_of_the_processes(split: ShardedSite) -> None:
    """Every node has exactly one answer, its own, and this process logged in to none."""
    answers = gather(
        split.transport, split.nodes(30), lambda node: Command(("echo", node.name)), limit=8
    )
    actual = [(answer.node, answer.stdout.decode().strip()) async for answer in answers]
    assert sorted(actual) == sorted((f"n{i}", f"n{i}") for i in range(30))
    assert len(split.transport.shards) == 2
    assert all(_sockets(shard.pid) > 1 for shard in split.transport.shards)


def _sockets(pid: int) -> int:
    links = [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink()]
    return sum(link.startswith("socket:") for link in links)


@pytest.mark.parametrize("kind", sorted(SICK_KINDS))
async def test_a_sick_node_is_the_same_through_a_shard(split: ShardedSite, kind: str) -> None:
    """Outcomes, deadlines and sentences pass through."""
    split.transport.expect(4)
    answer = await split.transport.run(getattr(split.site, kind), ECHO)
    assert answer.outcome is SICK_KINDS[kind]
    assert answer.detail


async def test_few_nodes_start_no_process(split: ShardedSite) -> None:
    """What one process serves well is not split."""
    assert len(await split.ask(3, ECHO)) == 3
    assert not split.transport.shards


async def test_a_killed_shard_costs_the_nodes_it_was_asking_and_no_other(
    split: ShardedSite,
) -> None:
    """They are DIED for a reason that names this machine; the rest is asked by the other one."""
    nodes = split.nodes(40)
    answers: list[CommandResult] = []
    stream = gather(
        split.transport,
        nodes,
        lambda _: Command(("sh", "-c", "sleep 0.7; echo ok"), deadline_s=TIMEOUT_S),
        limit=10,
    )
    async for answer in stream:
        answers.append(answer)
        if len(answers) == 1:
            os.kill(split.transport.shards[0].pid, signal.SIGKILL)
    assert Counter(answer.node for answer in answers) == Counter(node.name for node in nodes)
    lost = [answer for answer in answers if answer.outcome is not Outcome.ANSWERED]
    assert 0 < len(lost) <= 10
    assert {answer.outcome for answer in lost} == {Outcome.DIED}
    assert all("this machine, not the node" in answer.detail for answer in lost)
    assert all("1 of 2 ended (killed by SIGKILL)" in answer.detail for answer in lost)


async def test_without_any_shard_left_the_work_is_done_here(split: ShardedSite) -> None:
    """Nodes that come after the last one died are asked directly."""
    await split.ask(6, ECHO)
    for shard in split.transport.shards:
        os.kill(shard.pid, signal.SIGKILL)
    await split.ask(6, ECHO)
    assert {answer.exit_status for answer in await split.ask(6, ECHO)} == {3}


async def test_a_key_that_cannot_be_read_is_told_and_does_not_hang(
    split: ShardedSite, tmp_path: Path
) -> None:
    """A mistake in our own settings is an error here as it is without shards."""
    ssh = replace(split.site.ssh, identity_files=(tmp_path / "no-such-key",), shards=2)
    transport = SpreadTransport(ssh, {}, 0, lambda: AsyncsshTransport(ssh))
    transport.expect(4)
    try:
        with pytest.raises(ConfigError, match="no-such-key"):
            await asyncio.wait_for(transport.run(split.site.good, ECHO), TIMEOUT_S)
    finally:
        await transport.close()


async def test_cancelling_ends_commands_and_processes(split: ShardedSite, tmp_path: Path) -> None:
    """Ctrl-C: what was answered stays, nothing stays behind."""
    begun = tmp_path / "begun"
    begun.mkdir()
    sleeper = Command(("sh", "-c", f"touch {begun}/$$; exec sleep 600"), deadline_s=900)
    running = asyncio.create_task(split.ask(8, sleeper))
    await _eight_begin(begun)
    pids = [shard.pid for shard in split.transport.shards]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await split.transport.close()
    assert len(pids) == 2
    assert not any(runs(pid) for pid in pids)


async def _eight_begin(folder: Path) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while len(os.listdir(folder)) < 8:  # noqa: ASYNC110 - other processes make files there
            await asyncio.sleep(0.02)


def test_a_shard_ends_with_the_process_it_works_for(tmp_path: Path) -> None:
    """A brctl that was killed leaves no process behind."""
    program = (
        "import time\n"
        "from brctl.fanout.processes.shards import start_shards\n"
        "shards = start_shards(1, 0)\n"
        "print(shards[0].pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait(TIMEOUT_S)
    parent.stdout.close()
    try:
        deadline = time.monotonic() + TIMEOUT_S
        while runs(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not runs(pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
