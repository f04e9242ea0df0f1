"""A thousand hosts on one machine: real sshd in a network namespace of its own, faults by nftables.

Everything lives in a namespace pair that ends with the process: loopback addresses of 127.1.0.0/16
are the hosts, nothing outside can be reached and nothing outside can reach it.
"""

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncssh

PORT, MUTE_PORT, DYING_PORT = 2222, 2301, 2302
SAY = "brctl-bench-ok"


@dataclass(frozen=True)
class Fleet:
    """Hosts by what is wrong with them; `folder` has keys and configuration for every tool."""

    folder: Path
    hosts: tuple[str, ...]
    refusing: frozenset[str] = frozenset()
    mute: frozenset[str] = frozenset()
    dying: frozenset[str] = frozenset()

    @property
    def faulty(self) -> frozenset[str]:
        return self.refusing | self.mute | self.dying

    @property
    def healthy(self) -> frozenset[str]:
        return frozenset(self.hosts) - self.faulty


def enter_namespaces(argv: Sequence[str]) -> None:
    """Start this program again where the hosts can exist; returns only inside."""
    if os.environ.get("BRCTL_BENCH_INSIDE"):
        return
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nft", "ip"))):
        raise SystemExit("fanout: needs root, unshare, ip and nft (Debian: iproute2 nftables)")
    os.environ["BRCTL_BENCH_INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "-n", "-m", "--", *argv])  # noqa: S606 - no shell


def addresses(count: int) -> tuple[str, ...]:
    """So many loopback addresses, none of them 127.0.0.1."""
    return tuple(f"127.1.{i // 250}.{i % 250 + 1}" for i in range(count))


@contextlib.contextmanager
def open_fleet(folder: Path, count: int) -> Iterator[Fleet]:
    """A healthy fleet of `count` hosts, one real sshd behind all of them."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    key = write_keys(folder, addresses(count))
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/bin")
    if sshd is None:
        raise SystemExit("fanout: no sshd (Debian: openssh-server)")
    Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen(
        [sshd, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=subprocess.DEVNULL
    )
    try:
        _wait_until_open()
        with _sick_servers(key, folder):
            yield Fleet(folder, addresses(count))
    finally:
        server.terminate()
        server.wait(10)


def write_keys(folder: Path, hosts: Sequence[str]) -> asyncssh.SSHKey:
    """Keys, known_hosts with one line a host, and a home whose login shell reads nothing."""
    host_key, user_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    home = folder / "home" / ".ssh"
    home.mkdir(parents=True)
    for name, each in (("host_key", host_key), ("id", user_key)):
        each.write_private_key(str(folder / name))
        (folder / name).chmod(0o600)
    (folder / "authorized").write_bytes(user_key.export_public_key())
    known = host_key.export_public_key().decode()
    (folder / "known_hosts").write_text("".join(f"[{host}]:{PORT} {known}" for host in hosts))
    (folder / "sshd_config").write_text(
        f"Port {PORT}\nListenAddress 0.0.0.0\nHostKey {folder}/host_key\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\nUseDNS no\n"
        "PermitRootLogin prohibit-password\nMaxStartups 2000\nPrintMotd no\nPrintLastLog no\n"
        "Subsystem sftp internal-sftp\n"
    )
    (home / "config").write_text(
        f"Host *\n Port {PORT}\n User root\n IdentityFile {folder}/id\n IdentitiesOnly yes\n"
        f" UserKnownHostsFile {folder}/known_hosts\n StrictHostKeyChecking yes\n BatchMode yes\n"
    )
    passwd = folder / "passwd"
    lines = Path("/etc/passwd").read_text().splitlines(keepends=True)
    root = f"root:x:0:0:root:{folder}/home:/bin/sh\n"
    passwd.write_text("".join(root if line.startswith("root:") else line for line in lines))
    subprocess.run(["mount", "--bind", str(passwd), "/etc/passwd"], check=True)
    os.environ["HOME"] = f"{folder}/home"
    return host_key


def make_faulty(fleet: Fleet) -> Fleet:
    """5 % refuse, 2 % take the connection and stay silent, 1 % die while answering."""
    count = len(fleet.hosts)
    order = sorted(fleet.hosts, key=lambda host: host[::-1])  # spread over the fleet
    cuts = [max(1, count * share // 100) for share in (5, 2, 1)]
    refusing = frozenset(order[: cuts[0]])
    mute = frozenset(order[cuts[0] : sum(cuts[:2])])
    dying = frozenset(order[sum(cuts[:2]) : sum(cuts)])
    rules = ["add table inet bench"]
    rules.append("add chain inet bench nat { type nat hook output priority -100 ; }")
    rules.append("add chain inet bench deny { type filter hook output priority 0 ; }")
    rules.append(f"add rule inet bench deny {_to(refusing)} reject with tcp reset")
    rules.append(f"add rule inet bench nat {_to(mute)} redirect to :{MUTE_PORT}")
    rules.append(f"add rule inet bench nat {_to(dying)} redirect to :{DYING_PORT}")
    subprocess.run(["nft", "-f", "-"], input="\n".join(rules), text=True, check=True)
    return Fleet(fleet.folder, fleet.hosts, refusing, mute, dying)


def _to(hosts: frozenset[str]) -> str:
    return f"ip daddr {{ {', '.join(sorted(hosts))} }} tcp dport {PORT}"


@contextlib.contextmanager
def _sick_servers(host_key: asyncssh.SSHKey, folder: Path) -> Iterator[None]:
    """The silent and the dying server, in a thread of their own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(_serve_sick(host_key, folder), loop).result(10)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


async def _serve_sick(host_key: asyncssh.SSHKey, folder: Path) -> None:
    async def say_nothing(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async def die(process: asyncssh.SSHServerProcess[str]) -> None:
        process.stdout.write("half an ans")
        await process.stdout.drain()
        process.channel.get_connection().abort()

    await asyncio.start_server(say_nothing, "0.0.0.0", MUTE_PORT)  # noqa: S104 - own namespace
    await asyncssh.listen(
        "0.0.0.0", DYING_PORT, server_host_keys=[host_key], process_factory=die,  # noqa: S104
        authorized_client_keys=str(folder / "authorized"),
    )  # fmt: skip


def _wait_until_open() -> None:
    for _ in range(500):
        try:
            socket.create_connection(("127.1.0.1", PORT), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise SystemExit("fanout: sshd did not start within 10 s")
