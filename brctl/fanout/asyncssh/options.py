"""What every asyncssh connection shares: parsed keys, parsed known_hosts, pinned algorithms.

asyncssh reads keys, known_hosts and ssh_config again for each connection unless they are prepared:
15 ms of CPU a host against 2.5 ms.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import asyncssh

from brctl.fanout.asyncssh.known_hosts import KnownHosts
from brctl.library.config import SshSettings
from brctl.model.errors import ConfigError

_GLOBAL_KNOWN_HOSTS = Path("/etc/ssh/ssh_known_hosts")
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")

KEX = (
    "curve25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384", "ecdh-sha2-nistp521", "diffie-hellman-group-exchange-sha256",
    "diffie-hellman-group16-sha512", "diffie-hellman-group18-sha512",
    "diffie-hellman-group14-sha256",
)  # fmt: skip
CIPHERS = (
    "aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com",
    "aes128-ctr", "aes192-ctr", "aes256-ctr",
)  # fmt: skip
MACS = (
    "hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com", "hmac-sha2-256",
    "hmac-sha2-512",
)  # fmt: skip
"""All within what OpenSSH offers by default, the fastest first; see decision 0047."""


async def prepare_options(
    ssh: SshSettings, home: Path | None = None
) -> asyncssh.SSHClientConnectionOptions:
    """One set of options for all nodes: keys and known_hosts are read once.

    The agent is asked only when no identity file is configured: a key in an agent costs one round
    trip to it per connection.

    Raises:
        ConfigError: An identity file or known_hosts cannot be read or parsed.
    """
    home = home or Path.home()
    keys = _load_keys(ssh.identity_files, home)
    agent = os.environ.get("SSH_AUTH_SOCK", "") if not ssh.identity_files else ""
    options: asyncssh.SSHClientConnectionOptions = (
        await asyncssh.SSHClientConnectionOptions.construct(
            None,
            config=None,
            known_hosts=KnownHosts(known_hosts_files(ssh.known_hosts, home)),
            client_keys=keys or (() if agent else None),
            agent_path=agent or None,
            username=ssh.user or (),
            preferred_auth="publickey",
            connect_timeout=None,
            login_timeout=0,
            keepalive_interval=0,  # only while somebody waits long: see `transport.py`
            kex_algs=KEX,
            encryption_algs=CIPHERS,
            mac_algs=MACS,
            compression_algs=["none"],
            gss_kex=False,
            gss_auth=False,
            x509_trusted_certs=None,
            x509_trusted_cert_paths=[],
            env=None,
            send_env=None,
            encoding=None,
        )
    )
    return options


def _load_keys(configured: Sequence[Path], home: Path) -> list[asyncssh.SSHKeyPair]:
    if not configured:
        defaults = [home / ".ssh" / name for name in _DEFAULT_KEYS]
        return [key for path in defaults if path.is_file() for key in _load_default_key(path)]
    keys: list[asyncssh.SSHKeyPair] = []
    for path in configured:
        try:
            keys += asyncssh.load_keypairs(str(path))
        except (OSError, asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as exc:
            raise ConfigError(
                f"{path}: identity file cannot be used: {exc}",
                hint="a key with a passphrase belongs in ssh-agent; leave identity_file out then",
            ) from exc
    return keys


def _load_default_key(path: Path) -> Sequence[asyncssh.SSHKeyPair]:
    try:
        return asyncssh.load_keypairs(str(path))
    except (OSError, asyncssh.KeyImportError, asyncssh.KeyEncryptionError):
        # ssh skips a default key it cannot open; the agent may hold it.
        return ()


def known_hosts_files(configured: Path | None, home: Path | None = None) -> tuple[Path, ...]:
    """Where host keys are looked up: the configured file, else the user's and the system's."""
    home = home or Path.home()
    if configured is not None:
        return (configured,)
    files = (home / ".ssh" / "known_hosts", _GLOBAL_KNOWN_HOSTS)
    return tuple(path for path in files if path.is_file())
