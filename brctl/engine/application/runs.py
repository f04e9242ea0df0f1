"""Find a playbook, plan it, start it: how every run begins, whoever asks for it."""

import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from brctl.actions.context import RunContext
from brctl.engine.controller.people import person
from brctl.engine.controller.wiring import open_controller
from brctl.engine.incidents.notify_runs import Say
from brctl.engine.runs.context import run_context
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.run_files import RunRequest, read_json
from brctl.journal.store import read_journal
from brctl.library.config import Settings
from brctl.library.playbooks import load_playbooks, load_trusted_playbook, pick_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.errors import UsageError, did_you_mean
from brctl.model.runs.playbook import Json, Playbook
from brctl.playbook.guards import GUARDS
from brctl.playbook.overrides import Override


def all_playbooks(dirs: Sequence[Path]) -> dict[str, Playbook]:
    """Shipped playbooks and those of the site's library folders; the site's win."""
    return load_playbooks(playbook_dirs(dirs))


def playbook_dirs(dirs: Sequence[Path]) -> list[Path]:
    """Where playbooks lie: those that ship, then those of the site's library folders."""
    return [shipped_dir("playbooks"), *(folder / "playbooks" for folder in dirs)]


def find_playbook(dirs: Sequence[Path], name: str) -> Playbook:
    """A playbook by name, or by the path of a file."""
    if name.endswith((".yaml", ".yml")) or "/" in name:
        return load_trusted_playbook(Path(name))
    return pick_playbook(playbook_dirs(dirs), name)


def read_saved_plan(path: Path) -> Mapping[str, Json]:
    """The plan that `play plan --out FILE -o json` wrote."""
    plan = read_json(path).get("plan")
    if not isinstance(plan, dict):
        raise UsageError(
            f"{path}: not a saved plan", hint="brctl play plan NAME -o json --out FILE"
        )
    return plan


def read_override(guard: str, why: str, at: datetime) -> Override | None:
    """The guard that a person lets this run pass; None when none is named.

    Raises:
        UsageError: There is no such guard, or no reason.
    """
    if not guard:
        return None
    if guard not in GUARDS:
        raise UsageError(f"--override {guard}: no such guard; {did_you_mean(guard, GUARDS)}")
    if not why.strip():
        raise UsageError("--override needs -m: say why, it is recorded with your name")
    return Override(guard, person(), why, at)


def request_for(
    settings: Settings,
    *,
    yes: bool = False,
    typed: str | None = None,
    override: Override | None = None,
) -> RunRequest:
    """What the run's process must know: who asks, in which context, and what they said already."""
    config = str(settings.config_file) if settings.config_file else ""
    return RunRequest(person(), settings.context, config, yes=yes, typed=typed, override=override)


@asynccontextmanager
async def open_context(settings: Settings, say: Say) -> AsyncIterator[RunContext]:
    """The context as runs see it; warnings about its guard files are said aloud."""
    async with open_controller(settings) as controller:
        context = run_context(controller)
        for warning in context.guards.warnings:
            say(f"warning: {warning}")
        yield context


def interrupt_run(run_dir: Path) -> bool:
    """Ask the run's process to stop after its step; False when none is running."""
    starts = [e for e in read_journal(run_dir).events if "pid" in e.fields]
    if not read_run(run_dir).alive or not starts:
        return False
    os.kill(int(str(starts[-1].fields["pid"])), signal.SIGINT)
    return True
