"""Nodes behind a jump host: one shared connection, bounded handshakes, no circles."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest

from brctl.fanout.asyncssh.transport import AsyncsshTransport, jump_node
from brctl.fanout.gather import gather
from brctl.library.config import SshSettings
from brctl.model.command import Command, Outcome
from brctl.model.inventory import Node
from tests.timeouts import TIMEOUT_S

ECHO = Command(("echo", "hello"))


class JumpHost(asyncssh.SSHServer):
    """Forwards connections and counts its own."""

    logins = 0

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        JumpHost.logins += 1

    def connection_requested(self, *_: object) -> bool:
        return True


class Inner(asyncssh.SSHServer):
    """Counts handshakes that are under way at once."""

    open_handshakes = 0
    most = 0

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        Inner.open_handshakes += 1
        Inner.most = max(Inner.most, Inner.open_handshakes)

    def auth_completed(self) -> None:
        Inner.open_handshakes -= 1


async def say_hello(process: asyncssh.SSHServerProcess[str]) -> None:
    process.stdout.write("hello\n")
    process.exit(0)


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[tuple[SshSettings, dict[str, Node]]]:
    host_key, user_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    user_key.write_private_key(str(tmp_path / "id"))
    (tmp_path / "authorized").write_bytes(user_key.export_public_key())
    JumpHost.logins = Inner.open_handshakes = Inner.most = 0
    servers = [
        await asyncssh.listen(
            "127.0.0.1", 0, server_factory=factory, server_host_keys=[host_key],
            authorized_client_keys=str(tmp_path / "authorized"), process_factory=say_hello,
        )
        for factory in (JumpHost, Inner)
    ]  # fmt: skip
    key = host_key.export_public_key().decode()
    ports = [server.get_port() for server in servers]
    (tmp_path / "known").write_text("".join(f"[127.0.0.1]:{port} {key}" for port in ports))
    ssh = SshSettings("root", (tmp_path / "id",), tmp_path / "known", handshakes_per_jump=3)
    inner = Node("inner", "127.0.0.1", ports[1], via="gate")
    yield ssh, {"gate": Node("gate", "127.0.0.1", ports[0]), "inner": inner}
    for server in servers:
        server.close()
        await server.wait_closed()


async def test_nodes_share_one_connection_to_their_jump_host(
    fleet: tuple[SshSettings, dict[str, Node]],
) -> None:
    """Twenty nodes cost the jump host one login and never more handshakes than allowed."""
    ssh, nodes = fleet
    many = [dataclasses.replace(nodes["inner"], name=f"i{n}") for n in range(20)]
    transport = AsyncsshTransport(ssh, nodes)
    answers = [a async for a in gather(transport, many, lambda _: ECHO, limit=20)]
    await transport.close()
    assert {(a.outcome, a.stdout) for a in answers} == {(Outcome.ANSWERED, b"hello\n")}
    assert JumpHost.logins == 1
    assert 1 <= Inner.most <= 3


async def test_a_dead_jump_host_is_named(fleet: tuple[SshSettings, dict[str, Node]]) -> None:
    """The node is unreachable, and the sentence says through whom."""
    ssh, nodes = fleet
    dead = {"gate": dataclasses.replace(nodes["gate"], port=1)}
    transport = AsyncsshTransport(ssh, dead)
    answer = await transport.run(nodes["inner"], ECHO)
    await transport.close()
    assert answer.outcome is Outcome.UNREACHABLE
    assert "jump host gate" in answer.detail


async def test_a_circle_of_jump_hosts_is_refused_at_once() -> None:
    """Two nodes that jump through each other do not wait for each other."""
    nodes = {"a": Node("a", "127.0.0.1", via="b"), "b": Node("b", "127.0.0.1", via="a")}
    transport = AsyncsshTransport(SshSettings(), nodes)
    async with asyncio.timeout(TIMEOUT_S):
        answers = await asyncio.gather(*(transport.run(node, ECHO) for node in nodes.values()))
    assert {a.outcome for a in answers} == {Outcome.UNREACHABLE}
    assert "a -> b -> a" in answers[0].detail


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bastion", ("", "bastion", 22)),
        ("ops@bastion:2222", ("ops", "bastion", 2222)),
        ("::1", ("", "::1", 22)),
    ],
)
def test_a_jump_host_may_stand_outside_the_inventory(
    text: str, expected: tuple[str, str, int]
) -> None:
    """`[user@]host[:port]`, as ssh -J reads it."""
    node = jump_node(text)
    assert (node.user, node.address, node.port) == expected
