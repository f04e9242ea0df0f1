"""Ask nodes for their host keys on purpose, to compare and to keep; nothing is trusted here."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import asyncssh

from brctl.fanout.asyncssh.known_hosts import KnownHosts
from brctl.fanout.asyncssh.outcomes import login_outcome
from brctl.library.config import SshSettings
from brctl.model.inventory import Node


class ScannedKeyState(StrEnum):
    """What a node's host key is to us."""

    NEW = "new"
    KNOWN = "known"
    CHANGED = "changed"
    REVOKED = "revoked"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class ShownKey:
    """The key one node showed.

    Attributes:
        fingerprint: SHA256 as `ssh-keygen -l` prints it.
        line: What known_hosts would say of it.
    """

    node: str
    state: ScannedKeyState
    kind: str = ""
    fingerprint: str = ""
    line: str = ""
    detail: str = ""


async def scan_keys(
    nodes: Sequence[Node], ssh: SshSettings, known: KnownHosts
) -> tuple[ShownKey, ...]:
    """The host key of each node, in the order of the nodes."""
    slots = asyncio.Semaphore(ssh.fanout)

    async def scan(node: Node) -> ShownKey:
        async with slots:
            return await _scan(node, ssh, known)

    return tuple(await asyncio.gather(*(scan(node) for node in nodes)))


async def _scan(node: Node, ssh: SshSettings, known: KnownHosts) -> ShownKey:
    if node.via:
        detail = f"behind {node.via}: take its key from there"
        return ShownKey(node.name, ScannedKeyState.SILENT, detail=detail)
    try:
        async with asyncio.timeout(ssh.connect_timeout_s + ssh.login_timeout_s):
            key = await asyncssh.get_server_host_key(node.address, node.port, config=None)
    except TimeoutError:
        return ShownKey(node.name, ScannedKeyState.SILENT, detail="no answer in time")
    except (asyncssh.Error, OSError) as exc:
        return ShownKey(node.name, ScannedKeyState.SILENT, detail=login_outcome(exc)[1])
    if key is None:
        return ShownKey(node.name, ScannedKeyState.SILENT, detail="showed no key")
    name = node.address if node.port == 22 else f"[{node.address}]:{node.port}"
    public = key.export_public_key().decode().split()[:2]
    return ShownKey(
        node.name, _state(key, known, node), public[0], key.get_fingerprint(),
        " ".join([name, *public]),
    )  # fmt: skip


def _state(key: asyncssh.SSHKey, known: KnownHosts, node: Node) -> ScannedKeyState:
    port = node.port if node.port != 22 else None
    trusted, _, revoked = known(node.address, "", port)
    shown = key.public_data
    if any(each.public_data == shown for each in revoked):
        return ScannedKeyState.REVOKED
    if any(each.public_data == shown for each in trusted):
        return ScannedKeyState.KNOWN
    same_kind = [each for each in trusted if each.get_algorithm() == key.get_algorithm()]
    return ScannedKeyState.CHANGED if same_kind else ScannedKeyState.NEW
