"""Files that say what brctl does: whoever may write or replace one acts as us."""

import grp
import os
import pwd
import stat
from pathlib import Path

from brctl.model.errors import ConfigError


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
    """Why a file must not be obeyed: what is wrong with it or its folder; "" when nothing is.

    A link is as good as the folder it lies in and the file it leads to.
    """
    try:
        real = path.resolve(strict=True)
        own = real.stat()
        folders = {folder: folder.stat() for folder in (path.parent.resolve(), real.parent)}
    except (OSError, RuntimeError) as exc:
        return f"cannot be read: {getattr(exc, 'strerror', None) or exc}"
    if not stat.S_ISREG(own.st_mode):
        return "not a regular file"
    return _problem(real, own) or next(
        (
            f"its folder {folder} {problem}"
            for folder, status in folders.items()
            if (problem := _problem_of_folder(folder, status, own))
        ),
        "",
    )


def _problem_of_folder(folder: Path, status: os.stat_result, own: os.stat_result) -> str:
    # In /tmp nobody can replace another's file, only link one there under a second name.
    if status.st_mode & stat.S_ISVTX and own.st_nlink == 1:
        return ""
    return _problem(folder, status)


def _problem(path: Path, status: os.stat_result) -> str:
    """Others may write it, or it is somebody else's."""
    who = f"(owner {_owner(status.st_uid)}, mode {stat.S_IMODE(status.st_mode):04o})"
    if status.st_uid not in (0, os.geteuid()):
        return f"belongs to user {status.st_uid}, neither root nor you {who}; chown {path}"
    if _is_open(status) and not _is_read_only(path):
        return f"others may write it {who}; chmod go-w {path}"
    return ""


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
