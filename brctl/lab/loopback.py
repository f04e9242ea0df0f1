"""Isolation `none`: nodes are SSH servers on loopback addresses of this machine."""

import os
import signal
import socket
import subprocess

from brctl.lab.processes import recorded_process, send, tagged, wait_gone
from brctl.lab.record import TAG_VARIABLE, LabNode, LabRecord
from brctl.lab.spec import LabPaths, tag_bytes
from brctl.library.own_program import own_program
from brctl.model.errors import UnavailableError

START_DEADLINE_S = 120.0
_PORTS = range(21000, 31000)


def addresses(tag: str, count: int) -> list[tuple[str, int]]:
    """An address and port for each node that nobody listens on.

    Each lab takes a /24 of its own out of 127/8, all of which Linux answers on `lo`.
    """
    seed = tag_bytes(tag)
    for attempt in range(64):
        net = f"127.{16 + (seed[0] + attempt) % 200}.{seed[1]}"
        port = _PORTS[(seed[2] * 256 + seed[3] + 97 * attempt) % len(_PORTS)]
        endpoints = [(f"{net}.{i}", port) for i in range(1, count + 1)]
        if all(_is_free(*endpoint) for endpoint in endpoints):
            return endpoints
    raise UnavailableError("no free loopback addresses for the lab's nodes")


def _is_free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def boot(record: LabRecord, paths: LabPaths, nodes: tuple[LabNode, ...]) -> None:
    """Start nodes; returns when all listen."""
    done = subprocess.run(
        own_program("brctl.lab.node_server", str(paths.root), *(n.name for n in nodes)),
        env={**os.environ, TAG_VARIABLE: record.tag},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        timeout=START_DEADLINE_S,
    )
    if done.returncode != 0:
        raise UnavailableError("the lab's SSH servers did not start", cause=done.stderr[-2000:])


def server_pid(paths: LabPaths, name: str) -> int | None:
    """The node's SSH server; None when it does not run."""
    return recorded_process(paths.node(name).process)


def processes(record: LabRecord, paths: LabPaths, name: str) -> tuple[int, ...]:
    """Everything that runs on a node, its server first."""
    server = server_pid(paths, name)
    return ((server,) if server else ()) + tagged(record.tag, name)


def power_off(record: LabRecord, paths: LabPaths, name: str) -> None:
    """End a node at once, with all that runs on it."""
    while pids := processes(record, paths, name):
        send(pids, signal.SIGKILL)
        wait_gone(pids)


def refuse_ssh(paths: LabPaths, name: str, *, refuse: bool) -> None:
    """Close the node's SSH port, or open it again; what runs on the node goes on."""
    server = server_pid(paths, name)
    if server is not None:
        send((server,), signal.SIGUSR1 if refuse else signal.SIGUSR2)
