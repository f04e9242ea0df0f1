"""Log in with paramiko; every failure becomes one outcome. Blocking: runs in a thread."""

import logging
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

import paramiko
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey

from brctl.fanout.contract import LoginFailedError
from brctl.library.config import SshSettings
from brctl.model.command import Outcome
from brctl.model.inventory import Node

# Its threads log what they raise as well; the answer's detail says it once.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)


LOGIN_OUTCOMES: Mapping[type[BaseException], Outcome] = {
    paramiko.BadHostKeyException: Outcome.HOST_KEY_MISMATCH,
    paramiko.AuthenticationException: Outcome.AUTHENTICATION_FAILED,
    paramiko.PasswordRequiredException: Outcome.AUTHENTICATION_FAILED,
    paramiko.SSHException: Outcome.REFUSED,
    EOFError: Outcome.REFUSED,
    ConnectionError: Outcome.REFUSED,
    OSError: Outcome.UNREACHABLE,
}


class _RefuseUnknown(paramiko.MissingHostKeyPolicy):
    """A host that known_hosts does not name is a mismatch, never a question."""

    def missing_host_key(
        self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey
    ) -> None:
        raise LoginFailedError(
            Outcome.HOST_KEY_MISMATCH, f"{hostname}: no {key.get_name()} key in known_hosts"
        )


def log_in(node: Node, ssh: SshSettings) -> paramiko.SSHClient:
    """A logged-in client; known_hosts is always checked.

    Raises:
        LoginFailedError: Says which outcome applies.
    """
    address = f"{node.address}:{node.port}"
    if node.via:
        detail = f"{address}: paramiko does not jump through {node.via}; use asyncssh or openssh"
        raise LoginFailedError(Outcome.UNREACHABLE, detail)
    sock = _connect(node, ssh, address)
    client = paramiko.SSHClient()
    started = time.monotonic()
    try:
        client.set_missing_host_key_policy(_RefuseUnknown())
        _load_known_hosts(client, ssh)
        _authenticate(client, node, ssh, sock)
        _refuse_revoked(client, ssh, address)
    except BaseException as exc:
        client.close()
        sock.close()
        raise _failure(
            exc, address, late=time.monotonic() - started >= ssh.login_timeout_s
        ) from exc
    return client


def _connect(node: Node, ssh: SshSettings, address: str) -> socket.socket:
    try:
        return socket.create_connection((node.address, node.port), ssh.connect_timeout_s)
    except TimeoutError as exc:
        detail = f"no TCP connection to {address} within {ssh.connect_timeout_s:g} s"
        raise LoginFailedError(Outcome.CONNECT_TIMED_OUT, detail) from exc
    except UnicodeError as exc:
        raise LoginFailedError(Outcome.UNREACHABLE, f"{address}: no such name") from exc
    except OSError as exc:
        raise _failure(exc, address) from exc


def _authenticate(
    client: paramiko.SSHClient, node: Node, ssh: SshSettings, sock: socket.socket
) -> None:
    client.connect(
        node.address,
        node.port,
        username=node.user or ssh.user or None,
        key_filename=str(ssh.identity_files[0]) if ssh.identity_files else None,
        allow_agent=not ssh.identity_files,
        look_for_keys=not ssh.identity_files,
        sock=sock,
        # Later than the banner's own deadline: paramiko takes no answer until then as an answer.
        timeout=ssh.login_timeout_s + 1.0,
        banner_timeout=ssh.login_timeout_s,
        auth_timeout=ssh.login_timeout_s,
        channel_timeout=ssh.login_timeout_s,
    )


def _load_known_hosts(client: paramiko.SSHClient, ssh: SshSettings) -> None:
    """Lines that paramiko understands: one with a marker, or a broken one, would end it."""
    for path in _known_hosts_files(ssh):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        with NamedTemporaryFile("w", encoding="utf-8") as kept:
            kept.writelines(f"{line}\n" for line in lines if _is_plain(line))
            kept.flush()
            client.load_system_host_keys(kept.name)


def _known_hosts_files(ssh: SshSettings) -> tuple[Path, ...]:
    if ssh.known_hosts is not None:
        return (ssh.known_hosts,)
    both = (Path.home() / ".ssh" / "known_hosts", Path("/etc/ssh/ssh_known_hosts"))
    return tuple(path for path in both if path.is_file())


def _is_plain(line: str) -> bool:
    """A host key and nothing else: `@cert-authority` and `@revoked` say something else."""
    if not line.strip() or line.lstrip().startswith(("#", "@")):
        return False
    try:
        return HostKeyEntry.from_line(line) is not None
    except (InvalidHostKey, paramiko.SSHException, ValueError, IndexError):
        return False


def _refuse_revoked(client: paramiko.SSHClient, ssh: SshSettings, address: str) -> None:
    """Paramiko knows no `@revoked` lines; whichever host they name, their key passes nowhere."""
    transport = client.get_transport()
    if transport is None:
        return
    shown = transport.get_remote_server_key().get_base64()
    texts = (p.read_text(encoding="utf-8", errors="replace") for p in _known_hosts_files(ssh))
    for line in (line for text in texts for line in text.splitlines()):
        if line.startswith("@revoked") and shown in line.split():
            raise LoginFailedError(Outcome.HOST_KEY_MISMATCH, f"{address}: host key is revoked")


def _failure(error: BaseException, address: str, *, late: bool = False) -> BaseException:
    """The failure as an outcome; interrupts pass unchanged."""
    if isinstance(error, LoginFailedError) or not isinstance(error, Exception):
        return error
    outcome = next((LOGIN_OUTCOMES[k] for k in type(error).__mro__ if k in LOGIN_OUTCOMES), None)
    if outcome is None:
        return error
    text = f"{error}" or type(error).__name__
    if late:  # paramiko says the same of a server that hangs up and of one that says nothing
        outcome = Outcome.LOGIN_TIMED_OUT
    return LoginFailedError(outcome, f"{address}: {text.splitlines()[0][:200]}")
