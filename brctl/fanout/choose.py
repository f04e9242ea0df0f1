"""Which transport the settings mean; SSH libraries are imported only when chosen."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType

from brctl.fanout.auto_transport import AutoTransport
from brctl.fanout.contract import Transport
from brctl.fanout.descriptors import raise_descriptor_limit
from brctl.fanout.local import LocalTransport
from brctl.fanout.openssh_transport import OpensshTransport
from brctl.fanout.processes.spread_transport import SpreadTransport
from brctl.fanout.ssh_config import load_ssh_config, why_openssh
from brctl.library.config import SshSettings
from brctl.model.errors import UsageError, did_you_mean
from brctl.model.inventory import Node

_NO_NODES: Mapping[str, Node] = MappingProxyType({})


KEPT = 1024
"""Idle connections an asyncssh transport keeps for the next command, the last used ones."""


def open_transport(
    ssh: SshSettings, nodes: Mapping[str, Node] = _NO_NODES, *, keep: int = KEPT
) -> Transport:
    """The transport `ssh.transport` names.

    Args:
        ssh: Settings of all SSH connections.
        nodes: The inventory's nodes, so that `via: NODE` finds that node's address; a `via` that
            is not in it is read as `[user@]host[:port]`.
        keep: Idle connections that stay open; 0 when no node is asked twice.
    """
    opener = TRANSPORTS.get(ssh.transport)
    if opener is None:
        raise UsageError(
            f"no transport {ssh.transport!r}; {did_you_mean(ssh.transport, TRANSPORTS)}"
        )
    raise_descriptor_limit()
    return opener(ssh, nodes, keep)


WITHOUT_STREAMS = frozenset({"broker"})
"""Transports that take all input first and give all output at the end, but for what is held."""


def takes_input_whole(ssh: SshSettings, nodes: Iterable[Node]) -> bool:
    """Whether one of these nodes gets all its input before its command; nothing is opened.

    A gateway could pass it on, but what all nodes behind it read travels there once when whole.
    """
    if ssh.transport in WITHOUT_STREAMS:
        return True
    if ssh.gateways != "tree" or ssh.transport not in ("asyncssh", "auto"):
        return False
    config_file = ssh.config_file if ssh.transport == "auto" else None
    blocks = load_ssh_config(config_file) if config_file else ()
    return any(node.via and not why_openssh(blocks, node.address) for node in nodes)


def _open_auto(ssh: SshSettings, nodes: Mapping[str, Node], keep: int) -> Transport:
    fast = _open_spread(ssh, nodes, keep)
    blocks = load_ssh_config(ssh.config_file) if ssh.config_file else ()
    return AutoTransport(fast, partial(OpensshTransport, ssh), blocks) if blocks else fast


def _open_spread(ssh: SshSettings, nodes: Mapping[str, Node], keep: int) -> Transport:
    return SpreadTransport(ssh, nodes, keep, partial(_open_asyncssh, ssh, nodes, keep))


def _open_broker(ssh: SshSettings, nodes: Mapping[str, Node], keep: int) -> Transport:
    from brctl.fanout.processes.broker_transport import BrokerTransport
    from brctl.fanout.processes.broker_wire import socket_path

    direct = partial(_open_asyncssh, ssh, nodes, keep)
    return BrokerTransport(ssh, nodes, socket_path(), direct)


def _open_asyncssh(ssh: SshSettings, nodes: Mapping[str, Node], keep: int) -> Transport:
    with _no_search_for_liboqs():
        from brctl.fanout.gateway.transport import open_asyncssh

    return open_asyncssh(ssh, nodes, keep)


@contextlib.contextmanager
def _no_search_for_liboqs() -> Iterator[None]:
    """Importing asyncssh runs ldconfig, gcc and ld to find a library for one more key exchange.

    They cost a tenth of a short command's CPU, and a compiler is nothing to run at each login.
    """
    import ctypes.util

    search = ctypes.util.find_library

    def find_nothing(name: str) -> None: ...

    ctypes.util.find_library = find_nothing
    try:
        yield
    finally:
        ctypes.util.find_library = search


def _open_paramiko(ssh: SshSettings, _nodes: Mapping[str, Node], keep: int) -> Transport:
    from brctl.fanout.paramiko.transport import ParamikoTransport

    return ParamikoTransport(ssh)


def _open_srun(ssh: SshSettings, _nodes: Mapping[str, Node], _keep: int) -> Transport:
    from brctl.fanout.srun.transport import SrunTransport

    return SrunTransport(ssh)


def _open_kubectl(ssh: SshSettings, _nodes: Mapping[str, Node], _keep: int) -> Transport:
    from brctl.fanout.kubernetes.transport import KubectlTransport

    return KubectlTransport(ssh)


TRANSPORTS: Mapping[str, Callable[[SshSettings, Mapping[str, Node], int], Transport]] = {
    "auto": _open_auto,
    "asyncssh": _open_spread,
    "broker": _open_broker,
    "openssh": lambda ssh, _nodes, _keep: OpensshTransport(ssh),
    "paramiko": _open_paramiko,
    "srun": _open_srun,
    "kubectl": _open_kubectl,
    "local": lambda _ssh, _nodes, _keep: LocalTransport(),
}
