"""Faults that need a real node: power-off, cable cut, freeze, and a slow login shell."""

import asyncio
import contextlib
import dataclasses
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncssh
import pytest

from brctl.fanout.asyncssh import transport as asyncssh_transport
from brctl.fanout.choose import open_transport
from brctl.fanout.contract import Transport
from brctl.library.config import SshSettings
from brctl.model.command import Command, Outcome
from brctl.model.inventory import Node
from brctl.sweep.stream import sweep
from tests.contract.transport_sites import SSHD
from tests.own_processes import descendants
from tests.sweep.answers import check
from tests.timeouts import TIMEOUT_S

TOOLS = all(map(shutil.which, ("ip", "unshare", "nsenter")))
pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(
        not (TOOLS and SSHD and os.geteuid() == 0), reason="needs root, sshd and iproute2"
    ),
]
TRANSPORTS = ["asyncssh", "openssh", "paramiko"]
BEGUN = Command(("sh", "-c", "echo begun; exec sleep 3600"), deadline_s=9.0)
"""Shorter than a silence after which the connection counts as dead."""

ROOM_S = TIMEOUT_S
"""Long for a busy machine, short beside the hour that the command would take."""
MOST_OF_TRAVEL_S = 4.0
STATUS = Command(("sh", "-c", "exit 3"), deadline_s=TIMEOUT_S)


@dataclass(frozen=True)
class Machine:
    """A node in its own network and PID namespace."""

    node: Node
    ssh: SshSettings
    """A login may take as long as a busy machine makes it."""
    pid: int
    netns: str
    link: str
    home: Path

    def power_off(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def cut_cable(self) -> None:
        # At the node's end: down at ours, the route would go and packets leave by another way.
        subprocess.run(["ip", "-n", self.netns, "link", "set", self.link, "down"], check=True)

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        for pid in descendants(self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    tag = f"bt{os.getpid() % 10_000:04d}"
    subnet = f"10.231.{os.getpid() % 250}"
    host_key, user_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    for name, key in (("host_key", host_key), ("id", user_key)):
        key.write_private_key(str(tmp_path / name))
        (tmp_path / name).chmod(0o600)
    (tmp_path / "authorized").write_bytes(user_key.export_public_key())
    known = host_key.export_public_key().decode()
    (tmp_path / "known").write_text(f"[{subnet}.2]:2222 {known}")
    home = tmp_path / "home"
    home.mkdir()
    _write_server(tmp_path, home)
    script = (
        f"mount --bind {tmp_path}/passwd /etc/passwd && ip link set lo up && "
        f"exec {SSHD} -D -e -f {tmp_path}/sshd_config"
    )
    process = None
    try:
        for line in (
            f"ip netns add {tag}",
            f"ip link add {tag}a type veth peer name {tag}b netns {tag}",
            f"ip addr add {subnet}.1/30 dev {tag}a",
            f"ip link set {tag}a up",
            f"ip -n {tag} addr add {subnet}.2/30 dev {tag}b",
            f"ip -n {tag} link set {tag}b up",
        ):
            subprocess.run(line.split(), check=True)
        process = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{tag}", "unshare", "--pid", "--fork",
             "--kill-child=KILL", "--mount-proc", "--mount", "sh", "-c", script],
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        _wait_for_banner(f"{subnet}.2")
        node = Node("m1", f"{subnet}.2", 2222, python=sys.executable)
        ssh = SshSettings(
            "root", (tmp_path / "id",), tmp_path / "known",
            connect_timeout_s=TIMEOUT_S, login_timeout_s=TIMEOUT_S,
        )  # fmt: skip
        yield Machine(node, ssh, process.pid, tag, f"{tag}b", home)
    finally:
        if process:
            process.kill()
            process.wait(TIMEOUT_S)
        subprocess.run(["ip", "link", "del", f"{tag}a"], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", tag], check=False, capture_output=True)


def _write_server(folder: Path, home: Path) -> None:
    Path("/run/sshd").mkdir(exist_ok=True)
    (folder / "sshd_config").write_text(
        f"Port 2222\nHostKey {folder}/host_key\nPidFile none\nStrictModes no\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/authorized\nUseDNS no\n"
        "PermitRootLogin prohibit-password\nPrintMotd no\nPrintLastLog no\n"
    )
    (folder / "passwd").write_text(
        f"root:x:0:0:root:{home}:/bin/bash\nsshd:x:101:65534::/run/sshd:/usr/sbin/nologin\n"
    )


def _wait_for_banner(address: str) -> None:
    limit_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < limit_s:
        with contextlib.suppress(OSError), socket.create_connection((address, 2222), 1) as opened:
            opened.settimeout(1)
            if opened.recv(4) == b"SSH-":
                return
        time.sleep(0.03)
    raise AssertionError("sshd in the namespace did not start")


@pytest.fixture(params=TRANSPORTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def transport(machine: Machine, name: str) -> AsyncIterator[Transport]:
    opened = open_transport(dataclasses.replace(machine.ssh, transport=name))
    yield opened
    machine.thaw()
    await opened.close()


@pytest.fixture
async def hurried(machine: Machine, name: str) -> AsyncIterator[Transport]:
    """For a node that never answers: it is waited for that long."""
    opened = open_transport(
        dataclasses.replace(machine.ssh, transport=name, connect_timeout_s=3, login_timeout_s=3)
    )
    yield opened
    machine.thaw()
    await opened.close()


async def _begun(machine: Machine) -> None:
    """Until the command said its word and sleeps, and some time for the word to travel.

    On a busy machine that is longer, as it was until the command had begun.
    """
    started = time.monotonic()
    deadline = started + TIMEOUT_S
    while not any(_program(pid) == b"sleep" for pid in descendants(machine.pid)):
        assert time.monotonic() < deadline, "the command did not begin"
        await asyncio.sleep(0.02)
    await asyncio.sleep(max(0.7, min(time.monotonic() - started, MOST_OF_TRAVEL_S)))


def _program(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0]
    return b""


async def _during(
    transport: Transport, machine: Machine, fault: Callable[[], None]
) -> tuple[Outcome, bytes, float]:
    running = asyncio.create_task(transport.run(machine.node, BEGUN))
    await _begun(machine)
    fault()
    answer = await running
    return answer.outcome, answer.stdout, answer.seconds


async def test_power_off_during_a_command_is_a_node_that_died(
    transport: Transport, hurried: Transport, machine: Machine
) -> None:
    """At once or at the deadline, with what was said; afterwards nobody answers there."""
    outcome, stdout, seconds = await _during(transport, machine, machine.power_off)
    assert outcome in (Outcome.DIED, Outcome.COMMAND_TIMED_OUT)
    assert stdout == b"begun\n"
    assert seconds < ROOM_S
    later = await hurried.run(machine.node, STATUS)
    assert later.outcome in (Outcome.REFUSED, Outcome.UNREACHABLE, Outcome.CONNECT_TIMED_OUT)


async def test_a_cut_cable_ends_at_the_commands_deadline(
    transport: Transport, hurried: Transport, machine: Machine
) -> None:
    """Silence is not health: what was said is kept, and the next connect says what it is."""
    outcome, stdout, seconds = await _during(transport, machine, machine.cut_cable)
    assert (outcome, stdout) == (Outcome.COMMAND_TIMED_OUT, b"begun\n")
    assert seconds < ROOM_S
    later = await hurried.run(machine.node, STATUS)
    assert later.outcome in (Outcome.CONNECT_TIMED_OUT, Outcome.UNREACHABLE)


async def test_a_frozen_node_takes_the_connection_and_never_logs_in(
    transport: Transport, hurried: Transport, machine: Machine
) -> None:
    """The kernel answers, sshd does not; once thawed, the node answers again."""
    machine.freeze()
    answer = await hurried.run(machine.node, STATUS)
    assert answer.outcome is Outcome.LOGIN_TIMED_OUT
    assert answer.seconds < ROOM_S
    machine.thaw()
    assert (await transport.run(machine.node, STATUS)).exit_status == 3


async def test_a_node_that_goes_silent_is_asked_whether_it_is_there(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During a long command silence ends it; an idle connection is left alone and used again."""
    monkeypatch.setattr(asyncssh_transport, "KEEPALIVE_S", 1.0)
    port = Command(("sh", "-c", "sleep 1.5; echo $SSH_CONNECTION"), deadline_s=TIMEOUT_S)
    transport = open_transport(dataclasses.replace(machine.ssh, transport="asyncssh"))
    try:
        first = await transport.run(machine.node, port)
        machine.freeze()
        await asyncio.sleep(5.0)
        machine.thaw()
        again = await transport.run(machine.node, port)
        assert first.stdout == again.stdout
        running = asyncio.create_task(
            transport.run(machine.node, dataclasses.replace(BEGUN, deadline_s=120))
        )
        await _begun(machine)
        machine.freeze()
        answer = await running
        assert (answer.outcome, answer.stdout) == (Outcome.DIED, b"begun\n")
        assert answer.seconds < ROOM_S
    finally:
        machine.thaw()
        await transport.close()


async def test_a_slow_login_shell_is_measured_and_not_blamed_on_the_probes(
    transport: Transport, machine: Machine
) -> None:
    """What a .bashrc costs shows as login seconds of the report."""
    slow_s = 6.0
    (machine.home / ".bashrc").write_text(f"sleep {slow_s}\n")
    stream = sweep(transport, [machine.node], {"c": check("c")}, limit=1)
    reports = [each async for each in stream]
    report = reports[0]
    assert report.outcome is Outcome.ANSWERED
    assert report.login_s is not None
    assert report.login_s >= slow_s
    assert report.results[0].seconds < slow_s
