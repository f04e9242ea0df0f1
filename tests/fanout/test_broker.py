"""The connection broker: kept connections for the next command, and nothing lost without it."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from brctl.fanout.asyncssh.transport import AsyncsshTransport
from brctl.fanout.contract import Streams
from brctl.fanout.gather import gather
from brctl.fanout.processes.broker_place import LOCK_NAME
from brctl.fanout.processes.broker_transport import BrokerTransport
from brctl.library.config import SshSettings
from brctl.model.command import Command, Outcome
from brctl.model.inventory import Node
from tests.contract.transport_sites import SICK_KINDS, Site, is_patient, open_site
from tests.fakes.brokers import end_brokers
from tests.timeouts import TIMEOUT_S

ECHO = Command(("sh", "-c", "cat; exit 3"), b"hello")


async def one_line() -> AsyncIterator[bytes]:
    yield b"one\n"


@dataclass
class BrokerSite:
    """A site, and the folder whose broker this test owns."""

    site: Site
    path: Path

    def open(self, fanout: int = 64) -> BrokerTransport:
        ssh = replace(self.site.ssh, fanout=fanout)
        return BrokerTransport(ssh, {}, self.path, lambda: AsyncsshTransport(ssh))

    def broker_pid(self) -> int:
        return int((self.path.parent / LOCK_NAME).read_text())


@pytest.fixture
async def place(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[BrokerSite]:
    async with open_site(tmp_path, real_sshd=False, patient=is_patient(request)) as site:
        here = BrokerSite(site, tmp_path / "run" / "broker.sock")
        yield here
        end_brokers(here.path.parent)


async def test_the_next_command_finds_the_connection_open(place: BrokerSite) -> None:
    """Two clients, one login: the second one's command needs no handshake.

    What is held takes a connection of its own, and leads no other command past the broker.
    """
    for fanout in (64, 8):  # what `-f` says bears on no connection
        transport = place.open(fanout)
        answer = await transport.run(place.site.good, ECHO)
        await transport.close()
        assert (answer.outcome, answer.exit_status, answer.stdout) == (
            Outcome.ANSWERED, 3, b"hello",
        )  # fmt: skip
    known = place.site.ssh.known_hosts
    assert known
    known.write_text("")
    transport = place.open(1)
    alone = await transport.stream(place.site.good, ECHO, Streams(one_line, held=True))
    kept = await transport.run(place.site.good, ECHO)
    await transport.close()
    assert alone.outcome is Outcome.HOST_KEY_MISMATCH
    assert kept.outcome is Outcome.ANSWERED


@pytest.mark.parametrize("kind", sorted(SICK_KINDS))
async def test_a_sick_node_is_the_same_through_the_broker(place: BrokerSite, kind: str) -> None:
    """Outcomes, deadlines and sentences pass through."""
    transport = place.open()
    answer = await transport.run(getattr(place.site, kind), ECHO)
    await transport.close()
    assert answer.outcome is SICK_KINDS[kind]
    assert answer.detail


async def test_a_killed_broker_breaks_only_what_it_was_running(
    place: BrokerSite, tmp_path: Path
) -> None:
    """What ran is DIED, named as what it is; what comes later goes straight to its node."""
    transport = place.open()
    assert (await transport.run(place.site.good, ECHO)).exit_status == 3
    begun = tmp_path / "begun"
    sleeper = Command(("sh", "-c", f"touch {begun}; exec sleep 600"), deadline_s=500)
    running = asyncio.create_task(transport.run(place.site.good, sleeper))
    async with asyncio.timeout(TIMEOUT_S):
        while not begun.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.02)
    os.kill(place.broker_pid(), signal.SIGKILL)
    died = await running
    assert (died.outcome, died.exit_status) == (Outcome.DIED, None)
    assert "broker" in died.detail
    assert (await transport.run(place.site.good, ECHO)).exit_status == 3
    await transport.close()


async def test_without_a_broker_commands_go_straight(place: BrokerSite, tmp_path: Path) -> None:
    """A folder nobody can write to is no reason to fail."""
    (tmp_path / "file").write_text("")
    ssh = place.site.ssh
    blocked = tmp_path / "file" / "broker.sock"
    transport = BrokerTransport(ssh, {}, blocked, lambda: AsyncsshTransport(ssh))
    assert (await transport.run(place.site.good, ECHO)).exit_status == 3
    await transport.close()


async def test_many_commands_share_one_conversation(place: BrokerSite) -> None:
    """Answers find the command they belong to."""
    transport = place.open()
    nodes = [Node(f"n{i}", "127.0.0.1", place.site.good.port) for i in range(20)]
    answers = [
        answer
        async for answer in gather(
            transport, nodes, lambda node: Command(("echo", node.name)), limit=20
        )
    ]
    await transport.close()
    assert {a.node: a.stdout.decode().strip() for a in answers} == {n.name: n.name for n in nodes}


async def test_only_its_owner_can_reach_it_and_it_ends_when_idle(tmp_path: Path) -> None:
    """The socket's folder is closed to others; a broker nobody asks goes away."""
    path = tmp_path / "run" / "broker.sock"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "brctl.fanout.processes.broker",
        str(path),
        "5",
        stdin=subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            while not path.exists():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.02)
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
    assert not path.exists()


async def test_settings_keep_connections_apart(place: BrokerSite) -> None:
    """Another user name is another login, never a connection of someone else's."""
    transport = place.open()
    await transport.run(place.site.good, ECHO)
    await transport.close()
    ssh = SshSettings(known_hosts=place.site.ssh.known_hosts, login_timeout_s=TIMEOUT_S)
    unknown = BrokerTransport(ssh, {}, place.path, lambda: AsyncsshTransport(ssh))
    answer = await unknown.run(place.site.good, ECHO)
    await unknown.close()
    assert answer.outcome is Outcome.AUTHENTICATION_FAILED
