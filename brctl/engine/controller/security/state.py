"""What brctl keeps: its state, its journals' key, its broker's folder, the modes it gives files."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from brctl.engine.controller.doctor_journal import journal
from brctl.engine.controller.security.problem import text_and_command
from brctl.fanout.processes.broker_place import why_not_private
from brctl.fanout.processes.broker_wire import socket_path
from brctl.journal.chain_key import key_file
from brctl.library.config import Settings
from brctl.library.trusted_files import why_not_secret, why_untrusted_folder
from brctl.model.security_finding import SecurityFinding
from brctl.model.sweeps.sweep import Health

LOOKED_AT = 20_000
"""Files of the state that are looked at; a fleet's sweeps of a year are more."""
SHOWN = 5
_WRITE = "whoever writes there decides what brctl believes: verdicts, leases, what runs have done"
_READ = "whoever reads there sees logs, commands and outputs of nodes, with whatever stood in them"
_KEY = "whoever reads it can write journals that fit; whoever writes it makes yours unverifiable"
_UMASK = "files that your hooks, scripts and tickets make would be open to others"
_BROKER = "who listens there would be told every command and could invent every answer"
_JOURNAL = "what was done, and by whom, can no longer be shown"


def state_findings(settings: Settings) -> Iterator[SecurityFinding]:
    """The state directory, the folders above it, and what lies in it."""
    top = settings.state_dir
    if not top.exists():
        yield SecurityFinding(Health.OK, "state", str(top), "not made yet; it will be private")
        return
    problem = why_untrusted_folder(top.resolve())
    if problem:
        text, command = text_and_command(problem)
        yield SecurityFinding(Health.CRITICAL, "state", str(top), text, _WRITE, command)
    found = _Walk(top)
    open_ones = [finding for path in found if (finding := _open_to_others(path))]
    bad = len(open_ones)
    yield from open_ones[:SHOWN]
    if bad > SHOWN:
        text = f"{bad - SHOWN} more files and folders are open to others"
        yield SecurityFinding(
            Health.WARNING, "state", str(top), text, _READ, f"chmod -R go-rwx {top}"
        )
    if found.cut:
        text = f"only the first {LOOKED_AT} files were looked at"
        yield SecurityFinding(Health.UNKNOWN, "state", str(top), text, _READ)
    elif not bad and not problem:
        yield SecurityFinding(
            Health.OK, "state", str(top), f"{found.looked_at} files and folders, all private"
        )


class _Walk:
    """Files and folders below one, itself first, as many as are looked at."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self.cut = False
        self.looked_at = 0

    def __iter__(self) -> Iterator[Path]:
        for folder, _, files in os.walk(self._top):
            for name in ("", *files):
                if self.looked_at == LOOKED_AT:
                    self.cut = True
                    return
                self.looked_at += 1
                yield Path(folder, name) if name else Path(folder)


def _open_to_others(path: Path) -> SecurityFinding | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        return None
    who = f"owner {status.st_uid}, mode {stat.S_IMODE(status.st_mode):04o}"
    if status.st_uid not in (0, os.geteuid()):
        text = f"belongs to user {status.st_uid}, neither root nor you"
        return SecurityFinding(
            Health.CRITICAL, "state", str(path), text, _WRITE, f"chown {os.geteuid()} {path}"
        )
    if status.st_mode & 0o022:
        text, command = f"others may write it ({who})", f"chmod go-rwx {path}"
        return SecurityFinding(Health.CRITICAL, "state", str(path), text, _WRITE, command)
    # A file that others may read is hidden as long as its folder is private.
    if status.st_mode & 0o077 and stat.S_ISDIR(status.st_mode):
        text, command = f"others may enter it ({who})", f"chmod go-rwx {path}"
        return SecurityFinding(Health.WARNING, "state", str(path), text, _READ, command)
    return None


def journal_findings(settings: Settings) -> Iterator[SecurityFinding]:
    """The key of journals, and whether they are as they were written."""
    path = key_file()
    if path.exists():
        problem = why_not_secret(path)
        text, command = text_and_command(problem)
        health = Health.CRITICAL if problem else Health.OK
        yield SecurityFinding(
            health, "journal-key", str(path), text or "private", _KEY if problem else "", command
        )
    for found in journal(settings):
        why = "" if found.health is Health.OK else _JOURNAL
        subject = str(settings.state_dir)
        yield SecurityFinding(found.health, "journal", subject, found.text, why, found.hint)


def broker_findings(settings: Settings) -> Iterator[SecurityFinding]:
    """The folder of the broker's socket, when there is one."""
    folder = socket_path().parent
    problem = why_not_private(folder)
    if problem:
        path, _, text = problem.partition(": ")
        command = f"chmod 700 {path}" if "mode" in text else f"rm -r {path}"
        yield SecurityFinding(Health.CRITICAL, "broker", path, text, _BROKER, command)
    elif folder.exists() or settings.ssh.transport == "broker":
        text = "private" if folder.exists() else "not made yet; it will be private"
        yield SecurityFinding(Health.OK, "broker", str(folder), text)


def umask_findings() -> Iterator[SecurityFinding]:
    """What the modes of files are without brctl's doing; its own are private whatever it is."""
    mask = os.umask(0o077)
    os.umask(mask)
    if mask & 0o022 != 0o022:
        yield SecurityFinding(
            Health.WARNING, "umask", f"{mask:04o}", "lets others write new files", _UMASK,
            "umask 077",
        )  # fmt: skip
    else:
        yield SecurityFinding(Health.OK, "umask", f"{mask:04o}", "others may not write new files")
