"""Everything `doctor --security` looks at, in order; one thing that fails hides no other."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from brctl.engine.controller.security.environment import environment_findings, people_findings
from brctl.engine.controller.security.files import obeyed_findings, secret_findings
from brctl.engine.controller.security.problem import text_and_command
from brctl.engine.controller.security.ssh import agent_findings, forwarding_findings, key_findings
from brctl.engine.controller.security.state import (
    broker_findings,
    journal_findings,
    state_findings,
    umask_findings,
)
from brctl.library.config import Settings
from brctl.model.errors import BrctlError
from brctl.model.security_finding import SecurityFinding
from brctl.model.sweeps.sweep import Health

Look = Callable[[Settings], Iterator[SecurityFinding]]
_LOOKS: Mapping[str, Look] = {
    "configuration": obeyed_findings,
    "secrets": secret_findings,
    "state": state_findings,
    "journal": journal_findings,
    "broker": broker_findings,
    "ssh-key": key_findings,
    "agent-forwarding": forwarding_findings,
}


def examine_security(
    environ: Mapping[str, str], read_settings: Callable[[], Settings]
) -> tuple[SecurityFinding, ...]:
    """Every finding about this controller, the good ones too; no node is reached.

    Args:
        environ: As the process got it, before anything was taken out.
        read_settings: Reads the configuration, which may be what is wrong.
    """
    findings = [*environment_findings(environ), *people_findings(environ)]
    findings += [*umask_findings(), *agent_findings(environ)]
    try:
        settings = read_settings()
    except BrctlError as error:
        why = "without a configuration that can be obeyed nothing else was looked at"
        text, command = text_and_command(str(error))
        mend = command or error.hint or ""
        finding = SecurityFinding(Health.CRITICAL, "configuration", "-", text, why, mend)
        return (*findings, finding)
    for topic, look in _LOOKS.items():
        findings += _guarded(topic, look, settings)
    return tuple(findings)


def _guarded(topic: str, look: Look, settings: Settings) -> list[SecurityFinding]:
    found: list[SecurityFinding] = []
    try:
        found.extend(look(settings))
    except (BrctlError, OSError) as error:
        why = "what could not be looked at may be as bad as can be"
        found.append(SecurityFinding(Health.UNKNOWN, topic, "-", str(error), why))
    return found


def first_environment(path: Path = Path("/proc/self/environ")) -> dict[str, str]:
    """The environment this process was started with; ours has lost what must not be inherited."""
    try:
        raw = path.read_bytes()
    except OSError:
        return dict(os.environ)
    pairs = (os.fsdecode(row).partition("=") for row in raw.split(b"\0") if row)
    return {name: value for name, _, value in pairs}
