"""Lines of sudoers that allow a login on nodes what its checks need as root, and nothing else."""

import re
from collections.abc import Mapping, Sequence

from brctl.model.errors import UsageError
from brctl.model.sweeps.check import Check

_LOGIN = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")
_HEAD = """\
# What the checks of brctl run as root on a node, and nothing else. Generated: brctl config sudoers
# Install it on every node, as root:
#   brctl config sudoers > brctl && visudo -c -f brctl && install -m 0440 brctl /etc/sudoers.d/brctl
# config.yaml of the controller: ssh: {{user: {user}, sudo: "sudo -n", sudo_for: commands}}
# In ~{user}/.ssh/authorized_keys write `restrict` before the key: no forwarding, no terminal.
# Repairs (gpu reset, reboot) are not in here: a login that may do them may do everything.
Defaults:{user} !requiretty
"""


def root_commands(checks: Mapping[str, Check]) -> Mapping[tuple[str, ...], tuple[str, ...]]:
    """Each command that runs as root, and the checks that need it."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name, check in checks.items():
        if check.root_command:
            found.setdefault(check.root_command, []).append(name)
    return {command: tuple(names) for command, names in found.items()}


def without_command(checks: Mapping[str, Check]) -> tuple[str, ...]:
    """Checks that need root and name no single command; they stay UNKNOWN with these lines."""
    return tuple(n for n, c in checks.items() if "root" in c.needs and not c.root_command)


def sudoers(user: str, checks: Mapping[str, Check]) -> str:
    """The file for a login.

    Raises:
        UsageError: A login of that name would be read otherwise by sudoers.
    """
    if not _LOGIN.fullmatch(user):
        raise UsageError(f"--user {user!r}: no login that sudoers can name", hint="--user brctl")
    lines = [_HEAD.format(user=user)]
    for command, names in root_commands(checks).items():
        lines.append(f"# {', '.join(names)}\n{user} ALL=(root) NOPASSWD: {_escaped(command)}\n")
    missing = without_command(checks)
    if missing:
        lines.append(
            f"# These need root, name no root_command and stay UNKNOWN: {' '.join(missing)}\n"
        )
    return "".join(lines)


def _escaped(command: Sequence[str]) -> str:
    """Words as sudoers reads them; without arguments it would allow any, so "" says none."""
    words = [re.sub(r"([,:=])", r"\\\1", word) for word in command]
    return " ".join(words if len(words) > 1 else [*words, '""'])
