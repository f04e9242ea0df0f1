"""Who is behind this process: the account the kernel knows, and its unix groups.

USER and LOGNAME are not asked: anybody can set them, and then one person could be two. For root the
kernel's login uid decides, which sudo and su leave as it was. Only where there was no login that
set one (containers, cron, hosts without pam_loginuid) SUDO_USER is believed, which root can invent.
"""

import grp
import os
import pwd
from collections.abc import Mapping
from pathlib import Path

ROOT = "root"
LOGIN_UID = Path("/proc/self/loginuid")
_UNSET = (1 << 32) - 1


def person(environ: Mapping[str, str] = os.environ, login_file: Path = LOGIN_UID) -> str:
    """The account's name; for root the one that logged in, or the one sudo says without a login."""
    uid = os.getuid()
    if uid != 0:
        return _name_of(uid)
    login = login_uid(login_file)
    if login is not None:
        return _name_of(login)
    behind = environ.get("SUDO_USER", "")
    return behind if behind and _uid_of(behind) is not None else _name_of(uid)


def login_uid(login_file: Path = LOGIN_UID) -> int | None:
    """The account of this session's login, as the kernel keeps it; None when nothing set it."""
    try:
        uid = int(login_file.read_text())
    except (OSError, ValueError):
        return None
    return None if uid == _UNSET else uid


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _uid_of(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def groups_of(name: str) -> frozenset[str]:
    """The unix groups of a person; root is an account, not a person, and has none that count."""
    uid = _uid_of(name)
    if not uid:
        return frozenset()
    return frozenset(_group_name(gid) for gid in os.getgrouplist(name, pwd.getpwnam(name).pw_gid))


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return f"gid {gid}"
