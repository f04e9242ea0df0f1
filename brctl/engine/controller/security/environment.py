"""What the environment lets others slip in, and whether root can be told apart from root."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from brctl.engine.controller.people import LOGIN_UID, login_uid
from brctl.engine.controller.security.problem import text_and_command
from brctl.library.trusted_files import why_untrusted_folder
from brctl.model.security_finding import SecurityFinding
from brctl.model.sweeps.sweep import Health

_RUNS = "a program or module that somebody left there runs as you"
_EMPTY = "an empty or relative entry means the current directory; what lies there runs as you"
_MEND = {
    "PATH": "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "PYTHONPATH": "unset PYTHONPATH",
}
_TWO = "one person with the root password can start a run and approve it as somebody else"


def environment_findings(environ: Mapping[str, str]) -> Iterator[SecurityFinding]:
    """PATH and PYTHONPATH: entries without a whole path, and folders that others may write."""
    for name, command in _MEND.items():
        value = environ.get(name, "")
        entries = value.split(os.pathsep) if value else []
        loose = [entry for entry in entries if not os.path.isabs(entry)]
        if loose:
            text = f"has {len(loose)} entries that are empty or relative: {value}"
            yield SecurityFinding(Health.CRITICAL, name, value, text, _EMPTY, command)
        bad = False
        for entry in dict.fromkeys(each for each in entries if os.path.isabs(each)):
            problem = _problem(Path(entry))
            if problem:
                text, mend = text_and_command(problem)
                yield SecurityFinding(Health.CRITICAL, name, entry, text, _RUNS, mend or command)
                bad = True
        if not loose and not bad:
            text = f"{len(entries)} folders, none that others may write" if entries else "not set"
            yield SecurityFinding(Health.OK, name, value or "-", text)


def _problem(folder: Path) -> str:
    try:
        real = folder.resolve(strict=True)
    except (OSError, RuntimeError):
        return ""
    return why_untrusted_folder(real) if real.is_dir() else ""


def people_findings(
    environ: Mapping[str, str], login_file: Path = LOGIN_UID
) -> Iterator[SecurityFinding]:
    """Whether the kernel knows who is behind root."""
    if os.geteuid() != 0:
        text = "the kernel's account says who you are"
        yield SecurityFinding(Health.OK, "people", str(os.geteuid()), text)
        return
    login, claimed = login_uid(login_file), environ.get("SUDO_USER", "")
    subject = f"SUDO_USER={claimed}" if claimed else "root"
    if login is None:
        text = "no login uid is set, so SUDO_USER is believed, which root can set"
        mend = "session required pam_loginuid.so   # in /etc/pam.d/sshd and login"
        yield SecurityFinding(Health.WARNING, "people", subject, text, _TWO, mend)
    elif login == 0:
        text = "logged in as root: nobody can tell who"
        mend = "PermitRootLogin no   # in sshd_config; log in by name, then sudo"
        yield SecurityFinding(Health.WARNING, "people", subject, text, _TWO, mend)
    else:
        text = f"logged in as user {login}, whatever SUDO_USER says"
        yield SecurityFinding(Health.OK, "people", subject, text)
