"""Which transport each node gets and why, and whether its host key is known; nothing is reached."""

from collections.abc import Iterable, Iterator, Sequence

from brctl.fanout.asyncssh.known_hosts import KnownHosts
from brctl.fanout.asyncssh.options import known_hosts_files
from brctl.fanout.asyncssh.transport import jump_node
from brctl.fanout.ssh_config import HostBlock, load_ssh_config, why_openssh
from brctl.library.config import Settings, SshSettings
from brctl.model.inventory import Inventory, Node
from brctl.model.ssh_route import KeyTrust, SshRoute


def ssh_routes(
    settings: Settings, inventory: Inventory, names: Sequence[str]
) -> tuple[tuple[SshRoute, ...], tuple[str, ...]]:
    """The nodes' routes and those of their jump hosts, and the known_hosts files looked into.

    Raises:
        ConfigError: known_hosts or the ssh_config cannot be read.
    """
    ssh = settings.ssh
    blocks = load_ssh_config(ssh.config_file) if ssh.config_file else ()
    files = known_hosts_files(ssh.known_hosts)
    known = KnownHosts(files)
    routes = [
        _route(node, ssh, blocks, known) for node in _with_jumps(inventory.pick(names), inventory)
    ]
    return tuple(routes), tuple(map(str, files))


def _with_jumps(nodes: Iterable[Node], inventory: Inventory) -> Iterator[Node]:
    """The nodes, then the jump hosts on the way to them, each once; circles end."""
    waiting, seen = list(nodes), set[str]()
    for node in waiting:
        if node.name in seen:
            continue
        seen.add(node.name)
        yield node
        if node.via:
            waiting.append(inventory.nodes.get(node.via) or jump_node(node.via))


def _route(
    node: Node, ssh: SshSettings, blocks: Sequence[HostBlock], known: KnownHosts
) -> SshRoute:
    transport, why = choose_transport(node, ssh, blocks)
    return SshRoute(node.name, transport, why, _key_state(node, transport, blocks, known))


def choose_transport(node: Node, ssh: SshSettings, blocks: Sequence[HostBlock]) -> tuple[str, str]:
    """The transport `open_transport` gives a node, and because of what."""
    if ssh.transport != "auto":
        return ssh.transport, f"ssh.transport is {ssh.transport}"
    if ssh.config_file is None:
        return "asyncssh", "no ssh.config_file is configured"
    line = why_openssh(blocks, node.address)
    if line:
        return "openssh", line
    return "asyncssh", f"nothing of weight for it in {ssh.config_file}"


def _key_state(
    node: Node, transport: str, blocks: Sequence[HostBlock], known: KnownHosts
) -> KeyTrust:
    if transport in ("local", "srun", "kubectl"):
        return KeyTrust.NOT_NEEDED
    # Its ssh_config may name another host name, alias or file; only ssh knows.
    if transport == "openssh" and why_openssh(blocks, node.address):
        return KeyTrust.LEFT_TO_SSH
    trusted, authorities, revoked = known(node.address, "", node.port)
    refused = {key.public_data for key in revoked}
    if any(key.public_data not in refused for key in trusted):
        return KeyTrust.TRUSTED
    # paramiko passes over @cert-authority lines, so they help no node it reaches.
    if authorities and transport != "paramiko":
        return KeyTrust.AUTHORITY
    return KeyTrust.REVOKED if revoked else KeyTrust.MISSING
