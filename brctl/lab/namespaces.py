"""Isolation `netns`: nodes with their own namespaces and OpenSSH server.

A node's namespaces have no names on this machine: they live exactly as long as the node's first
process. What does have names is the bridge and our ends of the cables; both come from the record.
"""

import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from brctl.lab.compile import build_libraries
from brctl.lab.environment import node_environment
from brctl.lab.processes import (
    in_namespace_of,
    is_alive,
    network_namespace,
    record_process,
    recorded_process,
    send,
    wait_gone,
)
from brctl.lab.record import TAG_VARIABLE, LabNode, LabRecord
from brctl.lab.spec import LabPaths, tag_bytes
from brctl.lab.sshd import find_sshd, write_sshd_files
from brctl.library.config import user_cache_dir
from brctl.model.errors import UnavailableError

INIT = Path(__file__).parent / "node_init.sh"
TOOLS = {"unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2", "tc": "iproute2"}
SSH_PORT = 22
START_DEADLINE_S = 120.0
_SIOCGIFADDR = 0x8915

# Input goes by way of descriptor 3: a shell gives its background jobs /dev/null for input.
_DETACHED = 'exec 3<&0; "$@" <&3 3<&- >&2 & echo $!'
_UNSHARE = (
    "unshare", "--net", "--uts", "--ipc", "--pid", "--mount", "--mount-proc", "--fork",
    "--kill-child=KILL", "--propagation", "private",
)  # fmt: skip


def missing() -> str | None:
    """Why nodes with namespaces cannot be made here; None when they can."""
    if os.geteuid() != 0:
        return "it needs root"
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            return f"{tool} is not installed (apt-get install {package})"
    if find_sshd() is None:
        return "sshd is not installed (apt-get install openssh-server)"
    tried = subprocess.run([*_UNSHARE, "true"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"unshare fails: {tried.stderr.strip()[:200]}"


def subnet(tag: str) -> str:
    """First three numbers of a /24 in 10/8 that no interface of this machine is in."""
    seed = tag_bytes(tag)
    used = {_interface_net(name) for _, name in socket.if_nameindex()}
    for attempt in range(256):
        net = f"10.{(seed[0] + attempt) % 256}.{seed[1]}"
        if net not in used:
            return net
    raise UnavailableError("no free 10.x.y.0/24 network for the lab")


def _interface_net(name: str) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control, suppress(OSError):
        request = struct.pack("256s", name.encode()[:15])
        answer = fcntl.ioctl(control, _SIOCGIFADDR, request)
        return socket.inet_ntoa(answer[20:24]).rpartition(".")[0]
    return None


def run_ip(record: LabRecord, lines: Iterable[str], *, forgiving: bool = False) -> None:
    """Run ip commands in one go; when forgiving, what does not exist does not matter.

    `ip` carries the lab's tag like every process of it: if `up` is killed, `down` must end this
    one before it removes the network, or a bridge could appear after that.
    """
    force = ["-force"] if forgiving else []
    done = subprocess.run(
        ["ip", *force, "-batch", "-"],
        input="\n".join(lines) + "\n",
        env={**os.environ, TAG_VARIABLE: record.tag},
        start_new_session=True,  # Ctrl-C is for us to act on, not for our tools to die of
        capture_output=True,
        text=True,
        check=False,
        timeout=START_DEADLINE_S,
    )
    if done.returncode != 0 and not forgiving:
        raise UnavailableError(
            "the lab's network could not be made", cause=done.stderr.strip()[:500]
        )


def boot(record: LabRecord, paths: LabPaths, nodes: Sequence[LabNode]) -> None:
    """Start nodes; returns when the SSH server of each answers."""
    _make_bridge(record)
    gates: list[int] = []
    started: list[tuple[int, LabNode]] = []
    try:
        cables: list[str] = []
        for node in nodes:
            write_sshd_files(record, paths, node)
            pid, gate = _start_init(record, paths, node)
            gates.append(gate)
            cables += _cable(record, node, pid)
            started.append((pid, node))
        for pid, node in started:
            _await_namespace(pid, node, paths.node(node.name).log)
        run_ip(
            record, [f"link del {record.interface(node.name)}" for node in nodes], forgiving=True
        )
        run_ip(record, cables)
        for gate in gates:
            os.write(gate, b"\n")
    finally:
        for gate in gates:
            os.close(gate)
    _await_ssh(paths, nodes)


def _make_bridge(record: LabRecord) -> None:
    if Path(f"/sys/class/net/{record.bridge}").exists():
        return
    run_ip(
        record,
        (
            f"link add {record.bridge} type bridge",
            f"address add {record.controller_address}/24 dev {record.bridge}",
            f"link set {record.bridge} up",
        ),
    )


def _cable(record: LabRecord, node: LabNode, pid: int) -> tuple[str, ...]:
    own = record.interface(node.name)
    # A machine keeps its hardware address over a reboot; its peers' ARP tables rely on it.
    mac = "02:bc:" + ":".join(f"{int(part):02x}" for part in node.address.split("."))
    return (
        f"link add {own} type veth peer name eth0 address {mac} netns {pid}",
        f"link set {own} master {record.bridge} up",
    )


def _start_init(record: LabRecord, paths: LabPaths, node: LabNode) -> tuple[int, int]:
    """Start a node's first process, waiting at its gate; its pid here and the gate's pipe."""
    node_paths = paths.node(node.name)
    libraries = build_libraries(user_cache_dir(os.environ))
    variables = {
        **node_environment(record, paths, libraries, node.name),
        "LAB_NODE_ROOT": str(node_paths.root),
        "LAB_NODE_ADDRESS": node.address,
        "LAB_SSHD": str(find_sshd()),
    }
    del variables["LD_PRELOAD"], variables["LD_LIBRARY_PATH"]
    waiting, gate = os.pipe()
    with node_paths.log.open("ab") as log:
        # The shell ends at once: the node belongs to init and never becomes our zombie.
        done = subprocess.run(
            ["sh", "-c", _DETACHED, "sh", *_UNSHARE, "sh", str(INIT)],
            stdin=waiting,
            stdout=subprocess.PIPE,
            stderr=log,
            env=variables,
            start_new_session=True,
            check=True,
        )
    os.close(waiting)
    pid = int(done.stdout)
    record_process(node_paths.process, pid)
    return pid, gate


def _await_namespace(pid: int, node: LabNode, log: Path) -> None:
    own = network_namespace(os.getpid())
    deadline = time.monotonic() + START_DEADLINE_S
    while network_namespace(pid) in (own, None):
        if not is_alive(pid) or time.monotonic() > deadline:
            raise UnavailableError(
                f"{node.name}: its namespaces could not be made", cause=_tail(log)
            )
        time.sleep(0.001)


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-1000:] if log.exists() else ""


def _await_ssh(paths: LabPaths, nodes: Sequence[LabNode]) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    for node in nodes:
        while not answers_ssh(node):
            if time.monotonic() > deadline or node_pid(paths, node.name) is None:
                raise UnavailableError(
                    f"{node.name}: its SSH server does not answer",
                    cause=_tail(paths.node(node.name).log),
                )
            time.sleep(0.01)


def answers_ssh(node: LabNode, deadline_s: float = 1.0) -> bool:
    """Whether an SSH server says who it is."""
    try:
        with socket.create_connection((node.address, node.port), deadline_s) as connection:
            connection.settimeout(deadline_s)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def node_pid(paths: LabPaths, name: str) -> int | None:
    """The process that holds a node's namespaces; None when the node is off."""
    return recorded_process(paths.node(name).process)


def processes(paths: LabPaths, name: str) -> tuple[int, ...]:
    """Everything that runs on a node."""
    pid = node_pid(paths, name)
    return in_namespace_of(pid) if pid else ()


def power_off(record: LabRecord, paths: LabPaths, name: str) -> None:
    """Cut a node's power: the cable goes silent first, so no peer hears a farewell."""
    run_ip(record, [f"link set {record.interface(name)} down"], forgiving=True)
    pids = processes(paths, name)
    send(pids, signal.SIGKILL)
    wait_gone(pids)
    run_ip(record, [f"link del {record.interface(name)}"], forgiving=True)


def enter(paths: LabPaths, name: str, command: Sequence[str]) -> None:
    """Run a short command inside a node's namespaces."""
    init = _first_inside(paths, name)
    subprocess.run(
        ["nsenter", f"--target={init}", "--net", "--uts", "--ipc", "--pid", "--mount", *command],
        check=True,
        capture_output=True,
        timeout=START_DEADLINE_S,
        stdin=subprocess.DEVNULL,
    )


def _first_inside(paths: LabPaths, name: str) -> int:
    holder = node_pid(paths, name)
    if holder is None:
        raise UnavailableError(f"{name} is off")
    children = Path(f"/proc/{holder}/task/{holder}/children").read_text().split()
    return int(children[0])


def refuse_ssh(paths: LabPaths, name: str, *, refuse: bool) -> None:
    """End the node's SSH listener, or start it again; what runs on the node goes on."""
    node_paths = paths.node(name).root
    if refuse:
        enter(paths, name, ["sh", "-c", f'kill "$(cat {node_paths}/sshd.pid)"'])
    else:
        sshd = str(find_sshd())
        enter(
            paths, name, [sshd, "-f", f"{node_paths}/sshd_config", "-E", f"{node_paths}/sshd.log"]
        )


def shape_link(interface: str, discipline: str | None) -> None:
    """Give our end of a cable a queueing discipline of `tc`, or take it away."""
    if discipline is None:
        command = ["tc", "qdisc", "del", "dev", interface, "root"]
    else:
        command = ["tc", "qdisc", "add", "dev", interface, "root", *discipline.split()]
    subprocess.run(
        command, check=discipline is not None, capture_output=True, timeout=START_DEADLINE_S
    )


def remove_network(record: LabRecord) -> None:
    """Remove the bridge and our ends of the cables."""
    cables = [f"link del {record.interface(node.name)}" for node in record.nodes]
    run_ip(record, [*cables, f"link del {record.bridge}"], forgiving=True)
