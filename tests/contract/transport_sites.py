"""Places a transport is tried against: SSH servers, healthy and sick, on loopback only."""

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncssh
import pytest

from brctl.library.config import SshSettings
from brctl.model.command import Outcome
from brctl.model.inventory import Node
from tests.fakes.ports import free_port
from tests.own_processes import descendants, end_all, pids_inside
from tests.timeouts import TIMEOUT_S

SSHD = shutil.which("sshd", path="/usr/sbin:/sbin:" + os.environ.get("PATH", ""))
DIE_WORD = "brctl-test-die"

SICK_KINDS = {
    "refusing": Outcome.REFUSED,
    "unreachable": Outcome.UNREACHABLE,
    "deaf": Outcome.CONNECT_TIMED_OUT,
    "mute": Outcome.LOGIN_TIMED_OUT,
    "stranger": Outcome.AUTHENTICATION_FAILED,
    "changed": Outcome.HOST_KEY_MISMATCH,
    "unknown": Outcome.HOST_KEY_MISMATCH,
}
"""Which outcome each sick kind of node ends as."""
_SILENT_KINDS = ("deaf", "mute")
"""Of which only our own deadline can tell."""

Reader = asyncio.StreamReader | asyncssh.SSHReader[bytes]
Writer = asyncio.StreamWriter | asyncssh.SSHWriter[bytes]


@dataclass(frozen=True)
class Site:
    """Nodes of every kind; `ssh` is how to reach them.

    Attributes:
        good: Runs commands in a real shell.
        dying: Ends the connection after the first output of a command, without a status.
        refusing: Nothing listens.
        unreachable: The kernel knows no way there.
        deaf: Takes no connection and answers nothing (full accept queue).
        mute: Takes the connection and never says a word.
        stranger: Does not accept our key.
        changed: Shows another host key than known_hosts has.
    """

    ssh: SshSettings
    good: Node
    dying: Node
    refusing: Node
    unreachable: Node
    deaf: Node
    mute: Node
    stranger: Node
    changed: Node
    unknown: Node

    @property
    def folder(self) -> Path:
        """Where the site's keys lie; a test may put its own files there."""
        return self.ssh.identity_files[0].parent


async def _serve_command(process: asyncssh.SSHServerProcess[bytes]) -> None:
    command = process.command or ""
    if DIE_WORD in command:
        process.stdout.write(b"half an ans")
        await process.stdout.drain()
        await asyncio.sleep(0.05)
        process.channel.get_connection().abort()
        return
    shell = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", command, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
    )
    assert shell.stdin
    assert shell.stdout
    assert shell.stderr
    feed = asyncio.create_task(_pump(process.stdin, shell.stdin))
    try:
        await asyncio.gather(
            _pump(shell.stdout, process.stdout), _pump(shell.stderr, process.stderr)
        )
        process.exit(await shell.wait())
    finally:
        feed.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, 9)
        # asyncio's wait() hangs while a pipe of the dead process still holds unread data.
        await asyncio.gather(shell.stdout.read(), shell.stderr.read(), shell.wait())


async def _pump(source: Reader, sink: Writer) -> None:
    with contextlib.suppress(OSError, asyncssh.Error, asyncssh.SignalReceived):
        while data := await source.read(1 << 16):
            sink.write(data)
            await sink.drain()
    # Also where the connection broke. A channel's end follows from the exit status.
    if isinstance(sink, asyncio.StreamWriter):
        with contextlib.suppress(OSError):
            sink.write_eof()


@asynccontextmanager
async def serve(
    host_key: asyncssh.SSHKey, authorized: Path, address: str = "127.0.0.1"
) -> AsyncIterator[int]:
    """The port of an in-process SSH server that runs commands in a real shell."""
    connections: list[asyncssh.SSHServerConnection] = []

    class Server(asyncssh.SSHServer):
        def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
            connections.append(conn)

    server = await asyncssh.listen(
        address,
        0,
        server_factory=Server,
        server_host_keys=[host_key],
        authorized_client_keys=str(authorized),
        process_factory=_serve_command,
        encoding=None,
    )
    try:
        yield server.get_port()
    finally:
        server.close()
        for connection in connections:
            connection.abort()
        await asyncio.gather(*(c.wait_closed() for c in connections), return_exceptions=True)
        await server.wait_closed()


@asynccontextmanager
async def open_site(folder: Path, *, real_sshd: bool, patient: bool = True) -> AsyncIterator[Site]:
    """Start every kind of node and stop them all again.

    Patient, a login may take as long as a busy machine makes it.
    """
    host_key, user_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    user_key.write_private_key(str(folder / "id"))
    (folder / "id").chmod(0o600)
    (folder / "authorized").write_bytes(user_key.export_public_key())
    (folder / "nobody").write_bytes(
        asyncssh.generate_private_key("ssh-ed25519").export_public_key()
    )
    async with contextlib.AsyncExitStack() as stack:
        other_key = asyncssh.generate_private_key("ssh-ed25519")
        servers = {
            "good": serve(host_key, folder / "authorized"),
            "stranger": serve(host_key, folder / "nobody"),
            "changed": serve(other_key, folder / "authorized"),
            "unknown": serve(host_key, folder / "authorized", "127.0.0.2"),
        }
        ports = {name: await stack.enter_async_context(s) for name, s in servers.items()}
        ports["dying"] = ports["good"]
        if real_sshd:
            ports["good"] = stack.enter_context(run_sshd(folder, host_key))
        ports["refusing"] = free_port()
        ports["deaf"] = stack.enter_context(_deaf_port())
        ports["mute"] = await stack.enter_async_context(_mute_port())
        known = host_key.export_public_key().decode()
        entries = [f"[127.0.0.1]:{port} {known}" for port in sorted(set(ports.values()))]
        (folder / "known_hosts").write_text("".join(entries))
        yield _site(folder, ports, patient=patient)


def _site(folder: Path, ports: dict[str, int], *, patient: bool) -> Site:
    nodes = {name: Node(name, "127.0.0.1", port) for name, port in ports.items()}
    nodes["unknown"] = Node("unknown", "127.0.0.2", ports["unknown"])
    # TCP cannot be sent to the broadcast address: the kernel says so at once.
    nodes["unreachable"] = Node("unreachable", "255.255.255.255", 22)
    ssh = SshSettings(
        user="root",
        identity_files=(folder / "id",),
        known_hosts=folder / "known_hosts",
        connect_timeout_s=TIMEOUT_S if patient else 3.0,
        login_timeout_s=TIMEOUT_S if patient else 4.0,
    )
    return Site(ssh=ssh, **nodes)


def is_patient(request: pytest.FixtureRequest) -> bool:
    """Whether nothing in this test waits for a login that never comes."""
    parameters = getattr(request.node, "callspec", None)
    return parameters is None or parameters.params.get("kind") not in _SILENT_KINDS


@contextlib.contextmanager
def run_sshd(folder: Path, host_key: asyncssh.SSHKey, logins_at_once: int = 10) -> Iterator[int]:
    """A real OpenSSH server that lives as long as the block.

    Its logins get a home of their own: a shell run by sshd reads the real one's .bashrc.
    """
    if SSHD is None:
        raise AssertionError("no sshd")
    Path("/run/sshd").mkdir(exist_ok=True)
    host_key.write_private_key(str(folder / "host_key"))
    (folder / "host_key").chmod(0o600)
    port = free_port()
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\n"
        "PermitRootLogin prohibit-password\nPasswordAuthentication no\nUseDNS no\n"
        f"MaxStartups {logins_at_once}:30:{10 * logins_at_once}\nSetEnv HOME={folder}\n"
    )
    process = subprocess.Popen(
        [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=subprocess.DEVNULL
    )
    try:
        _wait_until_open(port)
        yield port
    finally:
        # sshd lets a command run on when its connection closes; most have lost their parent then.
        end_all(lambda: [*descendants(process.pid), *pids_inside(f"HOME={folder}")])
        process.terminate()
        process.wait(TIMEOUT_S)


def _wait_until_open(port: int) -> None:
    limit_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < limit_s:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError("sshd did not start")


@contextlib.contextmanager
def _deaf_port() -> Iterator[int]:
    """A port whose accept queue is full, so that the kernel drops every further SYN."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield int(listener.getsockname()[1])


@asynccontextmanager
async def _mute_port() -> AsyncIterator[int]:
    """A port that takes connections and stays silent."""
    ended = asyncio.Event()

    async def say_nothing(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        ended.set()
        server.close()
