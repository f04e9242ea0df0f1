"""A gateway and nodes behind it in namespaces of their own; the controller has no route there."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from brctl.library.config import SshSettings
from brctl.model.inventory import Node
from tests.contract.transport_sites import SSHD
from tests.fakes.pythons import OLDEST_PYTHON
from tests.own_processes import descendants
from tests.timeouts import TIMEOUT_S

_TOOLS = all(map(shutil.which, ("ip", "unshare", "nsenter", "ssh")))
CAN_ISOLATE = bool(_TOOLS and SSHD and os.geteuid() == 0)
"""Whether nodes in namespaces of their own can be made here."""

# Preferably the oldest that a gateway may have.
GATEWAY_PYTHON = OLDEST_PYTHON or "/usr/bin/python3"


@dataclass(frozen=True)
class Machine:
    """One sshd in namespaces of its own."""

    node: Node
    pid: int

    def power_off(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        """Freeze or thaw all that runs there."""
        for pid in descendants(self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


@dataclass(frozen=True)
class GatewaySite:
    """How the controller reaches the gateway, and what is behind it."""

    ssh: SshSettings
    gateway: Machine
    leaves: Sequence[Machine]
    known_hosts: Path

    @property
    def nodes(self) -> dict[str, Node]:
        return {m.node.name: m.node for m in (self.gateway, *self.leaves)}


@contextlib.contextmanager
def open_gateway_site(folder: Path, leaves: int) -> Iterator[GatewaySite]:
    """The gateway has two keys' worth of trust: ours to log in to it, its own to the leaves."""
    tag, number = f"bg{os.getpid() % 10_000:04d}", os.getpid() % 250
    near, far = f"10.232.{number}", f"10.233.{number}"
    keys = _write_keys(folder, near, [f"{far}.{_host(i)}" for i in range(leaves)])
    processes: list[subprocess.Popen[bytes]] = []
    spaces = [f"{tag}g", *(f"{tag}l{i}" for i in range(leaves))]
    try:
        for space in spaces:
            _run(f"ip netns add {space}")
        _run(f"ip link add {tag}x type veth peer name {tag}y netns {tag}g")
        _run(f"ip addr add {near}.1/30 dev {tag}x")
        _run(f"ip link set {tag}x up")
        _run(f"ip -n {tag}g addr add {near}.2/30 dev {tag}y")
        _run(f"ip -n {tag}g link set {tag}y up")
        # What the controller sends there by mistake must not leave this machine.
        _run(f"ip route add unreachable {far}.0/24")
        for i in range(leaves):
            _run(f"ip -n {tag}g link add e{i} type veth peer name u0 netns {tag}l{i}")
            _run(f"ip -n {tag}g addr add {far}.{_host(i) - 1}/30 dev e{i}")
            _run(f"ip -n {tag}g link set e{i} up")
            _run(f"ip -n {tag}l{i} addr add {far}.{_host(i)}/30 dev u0")
            _run(f"ip -n {tag}l{i} link set u0 up")
        processes.append(_start_sshd(folder, spaces[0], "gw"))
        processes.extend(_start_sshd(folder, space, "leaf") for space in spaces[1:])
        _wait_for_banner(f"{near}.2")
        for process in processes[1:]:
            _wait_until_listening(process.pid)
        gateway = Machine(
            Node("gw", f"{near}.2", 2222, python=GATEWAY_PYTHON), processes[0].pid
        )  # fmt: skip
        yield GatewaySite(
            SshSettings(
                "root", (folder / "ours",), keys, connect_timeout_s=TIMEOUT_S,
                login_timeout_s=TIMEOUT_S, transport="asyncssh", gateways="tree",
            ),
            gateway,
            [
                Machine(Node(f"leaf{i}", f"{far}.{_host(i)}", 2222, via="gw"), process.pid)
                for i, process in enumerate(processes[1:])
            ],
            folder / "gw-home" / ".ssh" / "known_hosts",
        )  # fmt: skip
    finally:
        for process in processes:
            process.kill()
            process.wait(TIMEOUT_S)
        for line in (
            f"ip link del {tag}x",
            f"ip route del unreachable {far}.0/24",
            *(f"ip netns del {space}" for space in spaces),
        ):
            subprocess.run(line.split(), check=False, capture_output=True)


def _host(index: int) -> int:
    return 4 * index + 2


def _run(line: str) -> None:
    subprocess.run(line.split(), check=True)


def _write_keys(folder: Path, near: str, leaves: Sequence[str]) -> Path:
    """Keys and homes; the path of the controller's known_hosts, which knows the gateway only."""
    names = ("ours", "gw-own", "gw-host", "leaf-host")
    keys = {name: asyncssh.generate_private_key("ssh-ed25519") for name in names}
    public = {name: key.export_public_key().decode() for name, key in keys.items()}
    for name, key in keys.items():
        key.write_private_key(str(folder / name))
        (folder / name).chmod(0o600)
    (folder / "gw-authorized").write_text(public["ours"])
    (folder / "leaf-authorized").write_text(public["gw-own"])
    for kind in ("gw", "leaf"):
        home = folder / f"{kind}-home" / ".ssh"
        home.mkdir(parents=True, mode=0o700)
        (folder / f"{kind}-passwd").write_text(
            f"root:x:0:0:root:{home.parent}:/bin/bash\n"
            "sshd:x:101:65534::/run/sshd:/usr/sbin/nologin\n"
        )
        (folder / f"{kind}-sshd").write_text(
            f"Port 2222\nHostKey {folder}/{kind}-host\nPidFile none\nStrictModes no\nUsePAM no\n"
            f"AuthorizedKeysFile {folder}/{kind}-authorized\nUseDNS no\nMaxStartups 200\n"
            "PermitRootLogin prohibit-password\nPrintMotd no\nPrintLastLog no\n"
        )
    own = folder / "gw-home" / ".ssh"
    (own / "id_ed25519").write_bytes(keys["gw-own"].export_private_key())
    (own / "id_ed25519").chmod(0o600)
    lines = [f"[{leaf}]:2222 {public['leaf-host']}" for leaf in leaves]
    (own / "known_hosts").write_text("".join(lines))
    (folder / "known").write_text(f"[{near}.2]:2222 {public['gw-host']}")
    return folder / "known"


def _start_sshd(folder: Path, space: str, kind: str) -> subprocess.Popen[bytes]:
    Path("/run/sshd").mkdir(exist_ok=True)
    script = (
        f"mount --bind {folder}/{kind}-passwd /etc/passwd && ip link set lo up && "
        f"exec {SSHD} -D -e -f {folder}/{kind}-sshd"
    )
    return subprocess.Popen(
        ["nsenter", f"--net=/run/netns/{space}", "unshare", "--pid", "--fork",
         "--kill-child=KILL", "--mount-proc", "--mount", "sh", "-c", script],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _wait_until_listening(pid: int) -> None:
    """A leaf has no way from here; its own namespace says when port 2222 (0x8AE) is open."""
    limit_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < limit_s:
        if ":08AE 00000000:0000 0A" in Path(f"/proc/{pid}/net/tcp").read_text():
            return
        time.sleep(0.05)
    raise AssertionError("the SSH server of a leaf does not listen")


def _wait_for_banner(address: str) -> None:
    limit_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < limit_s:
        with contextlib.suppress(OSError), socket.create_connection((address, 2222), 1) as opened:
            opened.settimeout(1)
            if opened.recv(4) == b"SSH-":
                return
        time.sleep(0.03)
    raise AssertionError("sshd of the gateway did not start")
