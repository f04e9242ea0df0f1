"""Files that say what brctl does, and files that hold secrets: who else may write or read them."""

from collections.abc import Iterator
from pathlib import Path

from brctl.engine.controller.security.problem import text_and_command
from brctl.library.config import Settings
from brctl.library.log_rules import RULES_DIR
from brctl.library.trusted_files import why_untrusted
from brctl.model.errors import ConfigError
from brctl.model.security_finding import SecurityFinding
from brctl.model.sweeps.sweep import Health
from brctl.notify.secret_file import read_secret

_INVENTORY_FILES = ("file", "hostlist", "ansible")
_OBEYED = "whoever may write it decides what brctl runs as you here and as its login on nodes"
_LIMITS = "whoever may write it loosens nothing alone, but takes out what the site counts on"
_SENT_AS_YOU = "whoever reads it can write to your chat, pages or tickets in your name"


def obeyed_findings(settings: Settings) -> Iterator[SecurityFinding]:
    """Configuration, jobs, inventories, limits, calendars, playbooks, checks, rules, programs."""
    good = 0
    for topic, path in dict.fromkeys(_obeyed(settings)):
        problem = why_untrusted(path) if path.exists() else ""
        if not problem:
            good += path.exists()
            continue
        why = _LIMITS if topic == "guards" else _OBEYED
        yield _refused(topic, path, problem, why)
    text = f"{good} files that are obeyed belong to you or root, and nobody else may replace them"
    yield SecurityFinding(Health.OK, "configuration", str(settings.config_file), text)


def _refused(topic: str, path: Path, problem: str, why: str) -> SecurityFinding:
    text, command = text_and_command(problem)
    return SecurityFinding(Health.CRITICAL, topic, str(path), text, why, command)


def _obeyed(settings: Settings) -> Iterator[tuple[str, Path]]:
    named = [settings.config_file, settings.baseline]
    yield from (("configuration", path) for path in named if path)
    yield from (("job", path) for path in settings.jobs)
    yield from (
        ("inventory", Path(str(source[key])))
        for source in settings.inventory
        for key in _INVENTORY_FILES
        if key in source
    )
    yield from (("guards", path) for path in settings.guard_files)
    yield from (("calendar", c.file) for c in settings.calendars.values() if c.file)
    for folder in settings.library_dirs:
        yield from (("playbook", path) for path in sorted((folder / "playbooks").glob("*.yaml")))
        for name in ("check.yaml", "probe.py"):
            yield from (("check", path) for path in sorted((folder / "checks").glob(f"*/*/{name}")))
        yield from (("rules", path) for path in sorted((folder / RULES_DIR).glob("*.yaml")))
    yield from _programs(settings)


def _programs(settings: Settings) -> Iterator[tuple[str, Path]]:
    folders = [folder for sink in settings.notify.sinks for folder in sink.folders]
    yield from (("hook", path) for f in folders if f.is_dir() for path in sorted(f.iterdir()))
    if settings.notify.ticket.command:
        yield "ticket", Path(settings.notify.ticket.command[0])


def secret_findings(settings: Settings) -> Iterator[SecurityFinding]:
    """Keys and tokens of notices and tickets."""
    ticket = settings.notify.ticket
    files = [ticket.key_file, ticket.token_file]
    files += [f for sink in settings.notify.sinks for f in (sink.secret_file, sink.token_file)]
    named = [path for path in dict.fromkeys(files) if path]
    for path in named:
        try:
            read_secret(path)
        except ConfigError as error:
            text = str(error).removeprefix(f"{path}: ")
            yield SecurityFinding(
                Health.CRITICAL, "secrets", str(path), text, _SENT_AS_YOU, error.hint or ""
            )
        else:
            yield SecurityFinding(Health.OK, "secrets", str(path), "only its owner may read it")
