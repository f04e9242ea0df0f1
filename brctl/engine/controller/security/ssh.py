"""Keys, the agent, and what your own ssh would lend to nodes."""

import base64
import binascii
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from brctl.engine.controller.security.problem import text_and_command
from brctl.inventory.load import load_inventory
from brctl.library.config import Settings
from brctl.library.trusted_files import why_not_secret, why_untrusted_folder
from brctl.model.nodeset import fold
from brctl.model.security_finding import SecurityFinding
from brctl.model.sweeps.sweep import Health

HOSTS_ASKED = 64
"""Nodes whose effective ssh_config is asked for; one block mostly holds for all."""
KEY_LIMIT_BYTES = 1 << 16
_ASK_S = 5.0
_NEW_FORM = b"-----BEGIN OPENSSH PRIVATE KEY-----"
_NEW_MAGIC = b"openssh-key-v1\0"
_KEY = "whoever reads it logs in to every node as brctl"
_PLAIN = "whoever copies the file, or a backup of it, logs in to every node as brctl"
_AGENT = "whoever may use the socket logs in wherever you may"
_LENT = "root on a node, or on the machine in between, logs in wherever you may while you are there"


def key_findings(settings: Settings) -> Iterator[SecurityFinding]:
    """Modes and passphrases of the keys that are offered."""
    home = Path(os.environ.get("HOME", "/")) / ".ssh"
    usual = [path for path in sorted(home.glob("id_*")) if path.suffix != ".pub"]
    for path in settings.ssh.identity_files or usual:
        yield from _key(path)


def _key(path: Path) -> Iterator[SecurityFinding]:
    if not path.is_file():
        yield SecurityFinding(Health.UNKNOWN, "ssh-key", str(path), "cannot be looked at", _KEY)
        return
    problem = why_not_secret(path)
    if problem:
        text, command = text_and_command(problem)
        yield SecurityFinding(Health.CRITICAL, "ssh-key", str(path), text, _KEY, command)
    locked = has_passphrase(_head(path))
    if locked is None:
        text = "no private key that can be read"
        yield SecurityFinding(Health.UNKNOWN, "ssh-key", str(path), text, _PLAIN)
    elif not locked:
        text = "has no passphrase; where cron needs it so, let its login do little on nodes"
        command = f"ssh-keygen -p -f {path}   # or: brctl config sudoers"
        yield SecurityFinding(Health.WARNING, "ssh-key", str(path), text, _PLAIN, command)
    elif not problem:
        yield SecurityFinding(Health.OK, "ssh-key", str(path), "private, with a passphrase")


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(KEY_LIMIT_BYTES)
    except OSError:
        return b""


def has_passphrase(raw: bytes) -> bool | None:
    """Whether a private key needs one to be used; None when it is no key."""
    if raw.startswith(_NEW_FORM):
        return _names_a_cipher(b"".join(raw.split(b"\n")[1:-2]))
    first = raw[:200]
    if b"PRIVATE KEY-----" not in first:
        return None
    return b"ENCRYPTED" in first


def _names_a_cipher(text: bytes) -> bool | None:
    try:
        # Only the head is needed, and whatever ends the text is of no interest.
        head = base64.b64decode(text[:160])
        (length,) = struct.unpack_from(">I", head, len(_NEW_MAGIC))
    except (binascii.Error, struct.error):
        return None
    start = len(_NEW_MAGIC) + 4
    return head[start : start + length] != b"none" if head.startswith(_NEW_MAGIC) else None


def agent_findings(environ: Mapping[str, str]) -> Iterator[SecurityFinding]:
    """Who else may use the agent at hand, and whether it was lent to this machine."""
    name = environ.get("SSH_AUTH_SOCK", "")
    if not name:
        yield SecurityFinding(Health.OK, "agent", "-", "no agent is at hand")
        return
    try:
        status = os.stat(name)
    except OSError as exc:
        yield SecurityFinding(Health.OK, "agent", name, f"cannot be used: {exc.strerror}")
        return
    if status.st_uid not in (0, os.geteuid()):
        text = f"belongs to user {status.st_uid}"
        yield SecurityFinding(Health.CRITICAL, "agent", name, text, _AGENT, "unset SSH_AUTH_SOCK")
        return
    problem = why_untrusted_folder(Path(name).resolve().parent) and status.st_mode & 0o022
    if problem:
        text, command = (
            f"others may use it (mode {status.st_mode & 0o777:04o})",
            f"chmod 600 {name}",
        )
        yield SecurityFinding(Health.CRITICAL, "agent", name, text, _AGENT, command)
    elif environ.get("SSH_CONNECTION"):
        text = "was lent to this machine by whoever logged in"
        command = "unset SSH_AUTH_SOCK   # and log in with: ssh -o ForwardAgent=no"
        yield SecurityFinding(Health.WARNING, "agent", name, text, _LENT, command)
    else:
        yield SecurityFinding(Health.OK, "agent", name, "is yours")


def forwarding_findings(settings: Settings) -> Iterator[SecurityFinding]:
    """ForwardAgent as your own ssh would have it for the nodes; brctl itself never does it."""
    if shutil.which("ssh") is None:
        yield SecurityFinding(Health.OK, "agent-forwarding", "-", "there is no ssh here")
        return
    nodes = list(load_inventory(settings).nodes.values())
    lent, silent = [], []
    for node in nodes[:HOSTS_ASKED]:
        answer = _forwards(node.address, settings.ssh.config_file)
        if answer is None:
            silent.append(node.name)
        elif answer:
            lent.append(node.name)
    if lent:
        text = "your ssh lends your agent to these nodes; brctl never does"
        command = "ForwardAgent no   # in ssh_config, under these hosts"
        yield SecurityFinding(Health.WARNING, "agent-forwarding", fold(lent), text, _LENT, command)
    if silent:
        text = "ssh -G gave no answer"
        yield SecurityFinding(Health.UNKNOWN, "agent-forwarding", fold(silent), text, _LENT)
    if not lent and not silent:
        looked = min(len(nodes), HOSTS_ASKED)
        text = f"your ssh lends no agent to the {looked} of {len(nodes)} nodes looked at"
        yield SecurityFinding(Health.OK, "agent-forwarding", "ssh_config", text)


def _forwards(address: str, config: Path | None) -> bool | None:
    """Whether `ssh ADDRESS` would forward the agent; ssh itself reads its configuration."""
    own = ["-F", str(config)] if config else []
    try:
        done = subprocess.run(  # noqa: S603 - an address cannot be an option behind `--`
            ["ssh", *own, "-G", "--", address],  # noqa: S607 - the ssh that its owner would type
            stdin=subprocess.DEVNULL, capture_output=True, timeout=_ASK_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    rows = [line.split(b" ", 1) for line in done.stdout.lower().splitlines()]
    values = [row[1] for row in rows if len(row) == 2 and row[0] == b"forwardagent"]
    return bool(values) and values[0] != b"no"
