"""What a site wrote itself, each file under its name: checks, log rules, playbooks."""

from collections.abc import Callable, Iterator
from pathlib import Path

from brctl.library.checks import load_check
from brctl.library.config import Settings
from brctl.library.log_rules import RULES_DIR, read_rule_file
from brctl.library.playbooks import load_trusted_playbook
from brctl.model.doctor_finding import DoctorFinding
from brctl.model.errors import BrctlError
from brctl.model.sweeps.sweep import Health

_PARTS: tuple[tuple[str, str, Callable[[Path], object]], ...] = (
    ("checks", "checks/*/*/check.yaml", load_check),
    ("rules", f"{RULES_DIR}/*.yaml", read_rule_file),
    ("playbooks", "playbooks/*.yaml", load_trusted_playbook),
)


def site(settings: Settings) -> Iterator[DoctorFinding]:
    """One line for each file that cannot be used, and how many of its kind can."""
    for kind, pattern, read in _PARTS:
        paths = [path for each in settings.library_dirs for path in sorted(each.glob(pattern))]
        mistakes = [(path, error) for path in paths if (error := _mistake(read, path))]
        for path, error in mistakes:
            say = f"{_name(path)} is not used: {error}"
            hint = error.hint or "mend it, or take the file away"
            yield DoctorFinding(Health.CRITICAL, kind, say, hint)
        if paths:
            sound = len(paths) - len(mistakes)
            yield DoctorFinding(Health.OK, kind, f"{sound} of this site can be used")


def _mistake(read: Callable[[Path], object], path: Path) -> BrctlError | None:
    try:
        read(path)
    except BrctlError as error:
        return error
    return None


def _name(path: Path) -> str:
    """As people call it: `gpu.mine` for a check, the file's own name for the others."""
    if path.name == "check.yaml":
        return f"{path.parent.parent.name}.{path.parent.name}"
    return path.stem
