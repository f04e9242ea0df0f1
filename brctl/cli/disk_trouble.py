"""What a full, read-only or closed disk looks like to us: a state that is not there, and no bug."""

import os
import sqlite3
from errno import EDQUOT, ENOSPC, EROFS
from pathlib import Path

from brctl.model.errors import UnavailableError

_ERRNO = frozenset({ENOSPC, EDQUOT, EROFS})
_SQLITE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})
_DETAIL = 8
"""Bits above which sqlite tells more than the kind of its error."""


def disk_trouble(error: Exception) -> UnavailableError | None:
    """What to tell people when the disk is full, read-only or closed; None for any other error."""
    if isinstance(error, OSError) and error.errno in _ERRNO:
        what = f"{error.filename or 'a file'}: cannot be written: {error.strerror}"
    elif isinstance(error, sqlite3.OperationalError) and _kind(error) in _SQLITE:
        what = f"the index of sweeps cannot be written: {error}"
    elif isinstance(error, PermissionError) and isinstance(error.filename, str | bytes):
        path = Path(os.fsdecode(error.filename)).absolute()
        return UnavailableError(
            f"{path}: {error.strerror} for uid {os.geteuid()}",
            hint="run as the user it belongs to, or name another `state_dir`",
        )
    else:
        return None
    return UnavailableError(what, hint="make room there, or name another `state_dir`")


def _kind(error: sqlite3.OperationalError) -> int:
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & ((1 << _DETAIL) - 1)
