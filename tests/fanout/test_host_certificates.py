"""Host certificates: a valid one is trusted through its authority, an expired one is a mismatch."""

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest

from brctl.fanout.choose import open_transport
from brctl.library.config import SshSettings
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Node

HELLO = Command(("echo", "hello"))


async def say_hello(process: asyncssh.SSHServerProcess[str]) -> None:
    process.stdout.write("hello\n")
    process.exit(0)


@asynccontextmanager
async def certified(
    folder: Path, valid_before: str, principal: str
) -> AsyncIterator[tuple[SshSettings, Node]]:
    """A server whose host key an authority in known_hosts signed."""
    authority, host_key, user_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(3))
    certificate = authority.generate_host_certificate(
        host_key, "node", principals=[principal], valid_after="20200101", valid_before=valid_before
    )
    user_key.write_private_key(str(folder / "id"))
    (folder / "id").chmod(0o600)
    (folder / "authorized").write_bytes(user_key.export_public_key())
    connections: list[asyncssh.SSHServerConnection] = []

    class Server(asyncssh.SSHServer):
        def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
            connections.append(conn)

    server = await asyncssh.listen(
        "127.0.0.1", 0, server_factory=Server, server_host_keys=[(host_key, certificate)],
        authorized_client_keys=str(folder / "authorized"), process_factory=say_hello,
    )  # fmt: skip
    port = server.get_port()
    key = authority.export_public_key().decode()
    (folder / "known").write_text(f"@cert-authority [127.0.0.1]:{port} {key}")
    try:
        yield SshSettings("root", (folder / "id",), folder / "known"), Node("n", "127.0.0.1", port)
    finally:
        for connection in connections:
            connection.abort()
        server.close()
        await server.wait_closed()


async def ask(ssh: SshSettings, node: Node, kind: str) -> CommandResult:
    transport = open_transport(dataclasses.replace(ssh, transport=kind))
    answer = await transport.run(node, HELLO)
    await transport.close()
    return answer


@pytest.mark.parametrize("kind", ["asyncssh", "openssh"])
@pytest.mark.parametrize(
    ("valid_before", "principal", "outcome"),
    [
        ("20990101", "127.0.0.1", Outcome.ANSWERED),
        ("20210101", "127.0.0.1", Outcome.HOST_KEY_MISMATCH),
        ("20990101", "other-node", Outcome.HOST_KEY_MISMATCH),
    ],
    ids=["valid", "expired", "another name"],
)
async def test_a_certificate_counts_only_while_it_is_valid_for_this_name(
    tmp_path: Path, kind: str, valid_before: str, principal: str, outcome: Outcome
) -> None:
    """The authority is in known_hosts; the certificate's own dates and names are checked too."""
    async with certified(tmp_path, valid_before, principal) as (ssh, node):
        answer = await ask(ssh, node, kind)
    assert answer.outcome is outcome, answer.detail
