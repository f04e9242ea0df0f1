"""Make the keys of a lab: one for its client, one for each node's SSH server."""

import asyncssh

from brctl.lab.record import LabRecord
from brctl.lab.spec import LabPaths


def write_keys(record: LabRecord, paths: LabPaths) -> None:
    """Write all keys, and what the client needs to check the nodes by."""
    client = asyncssh.generate_private_key("ssh-ed25519", comment="brctl lab")
    client.write_private_key(str(paths.client_key))
    client.write_public_key(f"{paths.client_key}.pub")
    lines = []
    for node in record.nodes:
        key = asyncssh.generate_private_key("ssh-ed25519", comment=f"brctl lab {node.name}")
        private = paths.node(node.name).host_key
        key.write_private_key(str(private))
        private.chmod(0o600)
        host = node.address if node.port == 22 else f"[{node.address}]:{node.port}"
        kind, public = key.export_public_key().decode().split()[:2]
        lines.append(f"{host} {kind} {public}\n")
    paths.client_key.chmod(0o600)
    paths.known_hosts.write_text("".join(lines))
