"""Which transport the settings mean; SSH libraries are imported only when chosen."""

from collections.abc import Mapping
from types import MappingProxyType

from brctl.fanout.contract import Transport
from brctl.fanout.descriptors import raise_descriptor_limit
from brctl.fanout.local import LocalTransport
from brctl.fanout.openssh_transport import OpensshTransport
from brctl.library.config import SshSettings
from brctl.model.errors import UsageError, did_you_mean
from brctl.model.inventory import Node

TRANSPORTS = ("asyncssh", "openssh", "paramiko", "local")
_NO_NODES: Mapping[str, Node] = MappingProxyType({})


def open_transport(ssh: SshSettings, nodes: Mapping[str, Node] = _NO_NODES) -> Transport:
    """The transport `ssh.transport` names.

    Args:
        ssh: Settings of all SSH connections.
        nodes: The inventory's nodes, so that `via: NODE` finds that node's address; a `via` that
            is not in it is read as `[user@]host[:port]`.
    """
    name = "asyncssh" if ssh.transport == "auto" else ssh.transport
    if name == "local":
        return LocalTransport()
    if name == "asyncssh":
        raise_descriptor_limit()
        from brctl.fanout.asyncssh_transport import AsyncsshTransport

        return AsyncsshTransport(ssh, nodes)
    if name == "openssh":
        return OpensshTransport(ssh)
    if name == "paramiko":
        from brctl.fanout.paramiko_transport import ParamikoTransport

        return ParamikoTransport(ssh)
    raise UsageError(f"no transport {name!r}; {did_you_mean(name, TRANSPORTS)}")
