"""A person's shell on one node of the inventory."""

import os
import shutil
import sys

from brctl.fanout.ssh_config import load_ssh_config, why_openssh
from brctl.library.config import Settings
from brctl.model.command import Outcome
from brctl.model.errors import DeniedError, UnavailableError
from brctl.model.inventory import Node

_DENIED = (Outcome.AUTHENTICATION_FAILED, Outcome.HOST_KEY_MISMATCH)


def shell_on(settings: Settings, node: Node) -> Outcome:
    """Open a shell and follow it to its end.

    Raises:
        DeniedError: The node refused us, or showed an unknown host key.
        UnavailableError: The node cannot be reached.
    """
    from brctl.fanout.contract import LoginFailedError
    from brctl.fanout.paramiko.shell import open_shell

    try:
        outcome, _ = open_shell(
            node,
            settings.ssh,
            sys.stdin.fileno(),
            sys.stdout.fileno(),
            os.environ.get("TERM", "xterm"),
        )
    except LoginFailedError as failed:
        kind = DeniedError if failed.outcome in _DENIED else UnavailableError
        raise kind(f"{node.name}: {failed.outcome.value}: {failed.detail}") from failed
    return outcome


def needs_openssh(settings: Settings, node: Node) -> bool:
    """Whether only the `ssh` program does what this node's configuration says."""
    if node.via or settings.ssh.transport == "openssh":
        return True
    path = settings.ssh.config_file
    return bool(path and why_openssh(load_ssh_config(path), node.address))


def exec_openssh(settings: Settings, node: Node) -> None:
    """Become `ssh` to a node; only returns by an error.

    Raises:
        UnavailableError: There is no `ssh` on this machine.
    """
    from brctl.fanout.openssh_transport import shell_argv

    if shutil.which("ssh") is None:
        raise UnavailableError("no `ssh` on this machine", hint="apt install openssh-client")
    os.execvp("ssh", shell_argv(settings.ssh, node))  # noqa: S606, S607 - no shell is wanted
