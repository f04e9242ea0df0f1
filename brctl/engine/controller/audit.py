"""One line for each action: who, from where, what and why; never its arguments."""

import logging
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from brctl.engine.controller.people import login_uid, person
from brctl.journal.audit_sinks import JOURNALD, SYSLOG, send
from brctl.library.config import Settings
from brctl.model.errors import UnavailableError


def record(settings: Settings, row: Mapping[str, str], *, may_refuse: bool = True) -> None:
    """Write a line, when the site wants them.

    Raises:
        UnavailableError: The sink took it not, the site wants no action without a line, and this
            one has not happened yet (`may_refuse`).
    """
    if not settings.audit.to:
        return
    try:
        send(
            settings.audit.to, place_of(settings), {**row, **origin(), "context": settings.context}
        )
    except UnavailableError as failed:
        if settings.audit.refuse and may_refuse:
            raise
        _say_once(str(failed))


def place_of(settings: Settings) -> Path:
    """The socket or file that lines go to."""
    usual = {"syslog": SYSLOG, "journald": JOURNALD, "file": settings.state_dir / "audit.ndjson"}
    return settings.audit.path or usual[settings.audit.to]


@lru_cache(maxsize=16)
def _say_once(text: str) -> None:
    logging.getLogger(__name__).warning("warning: %s; the action goes on", text)


def origin(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Who acts and from where, as far as the kernel and sshd say."""
    login = login_uid()
    return {
        "person": person(environ),
        "uid": str(os.getuid()),
        "login_uid": "unset" if login is None else str(login),
        "sudo_user": environ.get("SUDO_USER", ""),
        "from": environ.get("SSH_CONNECTION", "").split(" ")[0],
        "tty": _terminal(),
        "pid": str(os.getpid()),
    }


def _terminal() -> str:
    for descriptor in (0, 2):
        try:
            return os.ttyname(descriptor)
        except OSError:
            continue
    return ""
