"""Runs that are not through: one trouble has one of them at a time."""

from pathlib import Path

from brctl.engine.runs.read_run import read_or_say
from brctl.engine.runs.run_files import load_result
from brctl.journal.store import is_running, run_dirs
from brctl.model.errors import ConfigError, GuardError
from brctl.model.runs.result import RunState
from brctl.playbook.run import Run

_MAY_GO_ON = (RunState.WAITING, RunState.INTERRUPTED)


def open_runs(state_dir: Path) -> tuple[Run, ...]:
    """Runs that work, wait for people or stopped half-way, oldest first."""
    found = (read_or_say(path) for path in run_dirs(state_dir) if not _is_through(path))
    return tuple(run for run in found if isinstance(run, Run) and run.open)


def _is_through(run_dir: Path) -> bool:
    """By its result alone: bare `brctl` asks about every run there ever was."""
    try:
        result = load_result(run_dir)
    except ConfigError:
        return False
    return result is not None and result.result not in _MAY_GO_ON and not is_running(run_dir)


def refuse_second_run(state_dir: Path, verdict_id: str, job: str) -> None:
    """One open run for a verdict, and for the troubles of a job.

    Two that wait would both be approved in the end, and the later one stops a job that is well.

    Raises:
        GuardError: There is one; what can be done with it is said.
    """
    for run in open_runs(state_dir) if verdict_id else ():
        if run.verdict_id == verdict_id or (run.verdict_id and job and run.job == job):
            about = f"{run.name} ({run.playbook.name} for {run.verdict_id})"
            raise GuardError(f"refused: {about} is {run.state}. Nothing changed.", hint=_next(run))


def _next(run: Run) -> str:
    if run.waiting:
        return f"brctl play approve {run.name}, or brctl play deny {run.name}"
    if run.alive or run.state is RunState.STARTING:
        return f"watch it: brctl play show {run.name}"
    return f"brctl play resume {run.name}, or brctl play rollback {run.name}"
