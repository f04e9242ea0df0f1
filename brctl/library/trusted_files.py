"""Files that say what brctl does: whoever may write or replace one acts as us.

Reading one that people or other programs wrote ends, and takes bounded memory.
"""

import grp
import os
import pwd
import stat
from errno import EINVAL
from functools import cache
from pathlib import Path

from brctl.model.errors import ConfigError

NOT_REGULAR = "not a regular file"


def read_beginning(path: Path, count: int) -> bytes:
    """At most so many bytes; who reads one more than his limit knows that it is too large.

    Opening a pipe waits for whoever may write it, and a device may never end: neither is read.

    Raises:
        OSError: It cannot be read, or is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(EINVAL, NOT_REGULAR, str(path))
        return stream.read(count)


def read_whole(path: Path, limit_bytes: int) -> bytes:
    """A file that people or other programs wrote, all of it.

    Raises:
        ConfigError: It cannot be read, is no regular file, or is larger than the limit.
    """
    try:
        raw = read_beginning(path, limit_bytes + 1)
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror}") from exc
    if len(raw) > limit_bytes:
        raise ConfigError.at(path, 1, f"larger than {_rounded(limit_bytes)}")
    return raw


def _rounded(size_bytes: int) -> str:
    return f"{size_bytes >> 20} MiB" if size_bytes >> 20 else f"{size_bytes >> 10} KiB"


def refuse_untrusted(path: Path) -> None:
    """Refuse a file that somebody else than root or this user may have written.

    One that is not there is for whoever reads it to say.

    Raises:
        ConfigError: Path, owner and mode, and the command that mends it.
    """
    problem = why_untrusted(path) if os.access(path, os.F_OK) else ""
    if problem:
        raise ConfigError(f"{path}: refused: {problem}")


def why_untrusted(path: Path) -> str:
    """Why a file must not be obeyed: what is wrong with it or a folder above it; "" for nothing.

    A link is as good as the folders above it and the file it leads to.
    """
    try:
        real = path.resolve(strict=True)
        own = real.stat()
        link_folder = path.parent.resolve()
    except (OSError, RuntimeError) as exc:
        return f"cannot be read: {getattr(exc, 'strerror', None) or exc}"
    if not stat.S_ISREG(own.st_mode):
        return NOT_REGULAR
    folders = dict.fromkeys((link_folder, real.parent))
    return _problem(real, own) or next(
        (problem for folder in folders if (problem := why_untrusted_folder(folder, own.st_nlink))),
        "",
    )


def why_not_secret(path: Path) -> str:
    """Why others may know what a file holds, or give it another content; "" when they may not."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as exc:
        return f"cannot be read: {exc.strerror}"
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        return f"others may read it (mode {mode:04o}); chmod 600 {path}"
    return why_untrusted(path)


def why_untrusted_folder(folder: Path, names: int = 1) -> str:
    """Why somebody else can replace what lies in a folder, in it or in one above; "" for nobody.

    Args:
        folder: It has no links in its path.
        names: How many names the file in it has.
    """
    for ancestor in (folder, *folder.parents):
        try:
            status = ancestor.stat()
        except OSError as exc:
            return f"its folder {ancestor} cannot be read: {exc.strerror}"
        problem = _problem_of_folder(ancestor, status, names)
        if problem:
            return f"its folder {ancestor} {problem}"
        names = 1
    return ""


def _problem_of_folder(folder: Path, status: os.stat_result, names: int) -> str:
    # In a user namespace the folders of the machine's root show as nobody's.
    if status.st_uid == _owner_outside_of_namespace():
        return ""
    # In /tmp nobody but its owner can replace another's file, only link one there under a second
    # name.
    if status.st_mode & stat.S_ISVTX and names == 1 and status.st_uid in (0, os.geteuid()):
        return ""
    return _problem(folder, status)


def _problem(path: Path, status: os.stat_result) -> str:
    """Others may write it, or it is somebody else's."""
    who = f"(owner {_owner(status.st_uid)}, mode {stat.S_IMODE(status.st_mode):04o})"
    if status.st_uid not in (0, os.geteuid()):
        mend = f"chown {os.geteuid()} {path}"
        return f"belongs to user {status.st_uid}, neither root nor you {who}; {mend}"
    if _is_open(status) and not _is_read_only(path):
        return f"others may write it {who}; chmod go-w {path}"
    return ""


@cache
def _owner_outside_of_namespace() -> int | None:
    """The uid that stands for accounts this user namespace does not have; None without any."""
    try:
        shown = int(Path("/proc/sys/kernel/overflowuid").read_text())
        rows = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    except (OSError, ValueError):
        return None
    mapped = any(int(first) <= shown < int(first) + int(count) for first, _, count in rows)
    return None if mapped else shown


def _is_open(status: os.stat_result) -> bool:
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _is_own_group(status)


def _is_own_group(status: os.stat_result) -> bool:
    """Whether the group is the owner's own, with nobody else in it: umask 002 is safe then."""
    try:
        group, owner = grp.getgrgid(status.st_gid), pwd.getpwuid(status.st_uid)
    except KeyError:
        return False
    return group.gr_name == owner.pw_name and set(group.gr_mem) <= {owner.pw_name}


def _is_read_only(path: Path) -> bool:
    """Nobody writes on a mount that is read-only, such as a ConfigMap with its mode 0777."""
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _owner(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
