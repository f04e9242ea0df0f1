"""OpenSSH server of one node: its configuration, and files in place of the machine's own."""

import os
import pwd
import shutil
from pathlib import Path

from brctl.lab.compile import build_libraries
from brctl.lab.environment import node_environment, user_name
from brctl.lab.record import LabNode, LabRecord
from brctl.lab.spec import LabPaths, NodePaths
from brctl.library.config import user_cache_dir

_CONFIG = """\
Port 22
ListenAddress {address}
HostKey {root}/host_key
PidFile {root}/sshd.pid
AuthorizedKeysFile {authorized}
AuthenticationMethods publickey
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
UseDNS no
PrintMotd no
PrintLastLog no
MaxStartups 200
MaxSessions 200
LoginGraceTime 20
Subsystem sftp internal-sftp
SetEnv {environment}
"""


def find_sshd() -> Path | None:
    """The OpenSSH server; it insists on being called by its absolute path."""
    found = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    return Path(found) if found else None


def write_sshd_files(record: LabRecord, paths: LabPaths, node: LabNode) -> None:
    """Write what a node's first process needs to start its SSH server."""
    node_paths = paths.node(node.name)
    variables = node_environment(
        record, paths, build_libraries(user_cache_dir(os.environ)), node.name
    )
    (node_paths.root / "sshd_config").write_text(
        _CONFIG.format(
            address=node.address,
            root=node_paths.root,
            authorized=f"{paths.client_key}.pub",
            environment=" ".join(f'"{key}={value}"' for key, value in variables.items()),
        )
    )
    (node_paths.root / "passwd").write_text(_passwd(node_paths))
    # torch asks for peers by IPv4 addresses written as IPv6; what is not here goes to DNS.
    names = "".join(
        f"{other.address} {other.name}\n::ffff:{other.address} {other.name}\n"
        for other in record.nodes
    )
    (node_paths.root / "hosts").write_text(f"127.0.0.1 localhost\n{names}")


def _passwd(node_paths: NodePaths) -> str:
    """The machine's users, with a home of the node's own for the one who logs in.

    The real home may run slow things at login, which is not what a lab should measure.
    """
    lines = []
    for user in pwd.getpwall():
        home = str(node_paths.home) if user.pw_name == user_name() else user.pw_dir
        fields = (
            user.pw_name, "x", user.pw_uid, user.pw_gid, user.pw_gecos, home, user.pw_shell,
        )  # fmt: skip
        lines.append(":".join(map(str, fields)) + "\n")
    return "".join(lines)
