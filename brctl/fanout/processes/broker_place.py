"""Where the broker listens: a folder that nobody else can make, enter or stand in for.

A folder below /tmp may have been made by anybody first. Who listens there would be told every
command and could invent every answer.
"""

import asyncio
import fcntl
import os
import socket
import stat
import struct
from pathlib import Path

from brctl.model.errors import UnavailableError

LOCK_NAME = "broker.lock"
"""Held by the one broker of a user; holds its process id."""

_TRUSTED = 0
"""Root: who is root needs no broker to act as us."""


def make_private(folder: Path) -> None:
    """Make a folder of ours with mode 0700, and its parents, or see that it is one.

    Raises:
        UnavailableError: It is a link, another user's, or others may write it or replace it.
    """
    for directory in (*reversed(folder.parents), folder):
        try:
            directory.mkdir(mode=0o700)
        except FileExistsError:
            pass
        except OSError as exc:
            raise UnavailableError(f"{directory}: cannot be made: {exc.strerror}") from exc
        problem = _problem(directory, own=directory == folder)
        if problem:
            raise UnavailableError(f"{directory}: {problem}", hint="the broker is not used")
    if stat.S_IMODE(folder.stat().st_mode) != 0o700:
        folder.chmod(0o700)


def why_not_private(folder: Path) -> str:
    """What `make_private` would refuse, without making anything; "" when it would not."""
    for directory in (*reversed(folder.parents), folder):
        if not directory.exists() and not directory.is_symlink():
            return ""
        problem = _problem(directory, own=directory == folder)
        if problem:
            return f"{directory}: {problem}"
    return ""


def _problem(place: Path, *, own: bool) -> str:
    """Why whoever owns or may write a place could put another broker there."""
    found = place.lstat()
    if found.st_uid != os.geteuid() and (own or found.st_uid != _TRUSTED):
        return f"belongs to user {found.st_uid}, not to you ({os.geteuid()})"
    if stat.S_ISLNK(found.st_mode):
        return "is a link" if own else ""
    if not stat.S_ISDIR(found.st_mode):
        return "is no folder"
    if found.st_mode & 0o022 and (own or not found.st_mode & stat.S_ISVTX):
        return f"others may write it (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""


def acquire_lock(folder: Path) -> int | None:
    """The locked file of this user's broker, holding our process id; None when one runs.

    Raises:
        UnavailableError: The file is a link or another user's.
    """
    path = folder / LOCK_NAME
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise UnavailableError(f"{path}: cannot be opened: {exc.strerror}") from exc
    found = os.fstat(lock)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink != 1:
        os.close(lock)
        raise UnavailableError(f"{path}: not a file of ours that has this one name")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    os.ftruncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())
    return lock


def is_ours(stream: asyncio.StreamWriter) -> bool:
    """Whether a process of this user is at the other end; the kernel says so, not the process."""
    peer: socket.socket = stream.get_extra_info("socket")
    size = struct.calcsize("3i")
    packed = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return int(struct.unpack("3i", packed)[1]) == os.geteuid()
