"""Add host keys to known_hosts after a person has seen their fingerprints."""

import os
from collections.abc import Sequence
from pathlib import Path

from brctl.engine.controller.reach import Chosen
from brctl.fanout.asyncssh.keyscan import ShownKey, scan_keys
from brctl.fanout.asyncssh.known_hosts import KnownHosts
from brctl.library.config import Settings
from brctl.library.durable_files import private_dir
from brctl.model.errors import ConfigError


def known_hosts_file(settings: Settings) -> Path:
    """The file that new keys belong in."""
    return settings.ssh.known_hosts or Path.home() / ".ssh" / "known_hosts"


async def look_at_keys(settings: Settings, chosen: Chosen) -> tuple[ShownKey, ...]:
    """The host key of each chosen node and what it is to us."""
    known = KnownHosts(_existing(known_hosts_file(settings)))
    return await scan_keys(chosen.nodes, settings.ssh, known)


def _existing(path: Path) -> tuple[Path, ...]:
    return (path,) if path.is_file() else ()


def add_lines(path: Path, lines: Sequence[str]) -> None:
    """Append lines to known_hosts; what stands there is never changed.

    Raises:
        ConfigError: The file cannot be written.
    """
    text = "".join(f"{line}\n" for line in lines)
    try:
        private_dir(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as stream:
            if stream.seek(0, os.SEEK_END) and os.pread(descriptor, 1, stream.tell() - 1) != b"\n":
                text = "\n" + text
            stream.write(text.encode())
            stream.flush()
            os.fsync(descriptor)
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be written: {exc.strerror}") from exc
