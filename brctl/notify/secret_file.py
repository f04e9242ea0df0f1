"""Secrets come from files that nobody else may read, and from nowhere else."""

import os
import stat
from pathlib import Path

from brctl.model.errors import ConfigError

LIMIT_BYTES = 8192


def read_secret(path: Path) -> str:
    """The one line of a secret file.

    Raises:
        ConfigError: It cannot be read, others may read it, or it is no single line.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror}") from exc
    with os.fdopen(descriptor, "rb") as stream:
        _refuse_open_to_others(path, os.fstat(descriptor))
        raw = stream.read(LIMIT_BYTES + 1)
    text = raw.decode("utf-8", "replace").strip()
    if not text or len(raw) > LIMIT_BYTES or not text.isprintable() or " " in text:
        raise ConfigError(f"{path}: must hold one secret on one line")
    return text


def _refuse_open_to_others(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f"{path}: not a regular file")
    if status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise ConfigError(
            f"{path}: others may read or write this secret (mode {mode:04o})",
            hint=f"chmod 600 {path}",
        )
    if status.st_uid not in (0, os.geteuid()):
        raise ConfigError(f"{path}: belongs to user {status.st_uid}, neither root nor you")
