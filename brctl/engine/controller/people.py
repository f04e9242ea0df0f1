"""Who is behind this process: the account the kernel knows, and its unix groups.

USER and LOGNAME are not asked: anybody can set them, and then one person could be two.
"""

import grp
import os
import pwd
from collections.abc import Mapping

ROOT = "root"


def person(environ: Mapping[str, str] = os.environ) -> str:
    """The account's name; behind sudo the one that called it, which only root can claim."""
    uid = os.getuid()
    behind = environ.get("SUDO_USER", "")
    if uid == 0 and behind and _uid_of(behind) is not None:
        return behind
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
