"""Read a run from its folder: its files, its journal, and whether a process owns it."""

from pathlib import Path

from brctl.engine.runs.run_files import INPUTS, listed_playbook, load_inputs, load_request
from brctl.journal.store import EVENTS, is_running, read_journal, run_dirs
from brctl.model.errors import BrctlError, ConfigError
from brctl.playbook.plan import nodes_named
from brctl.playbook.run import Run, UnreadableRun
from brctl.playbook.run_record import replay

_UNREADABLE = (BrctlError, OSError, ValueError, RecursionError)


def read_run(run_dir: Path) -> Run:
    """A run as its folder tells it.

    Raises:
        ConfigError: A file is missing or torn, or the journal says what cannot be.
    """
    try:
        return _read(run_dir)
    except LookupError as exc:
        why = f"its journal names {exc}, which its playbook has not"
        raise ConfigError(f"run {run_dir.name} cannot be read: {why}") from exc
    except _UNREADABLE as exc:
        raise ConfigError(f"run {run_dir.name} cannot be read: {exc}") from exc


def _read(run_dir: Path) -> Run:
    playbook, inputs = listed_playbook(run_dir), load_inputs(run_dir)
    recording = read_journal(run_dir)
    return Run(
        name=run_dir.name,
        run_dir=run_dir,
        playbook=playbook,
        record=replay(playbook, recording.events),
        events=recording.events,
        damage=recording.damage,
        # After its last line a process still needs a moment to leave.
        alive=is_running(run_dir) and not recording.ended,
        by=load_request(run_dir).by,
        verdict_id=inputs.verdict_id,
        job=str(inputs.job.get("name") or ""),
        nodes=nodes_named(playbook, inputs.inputs),
    )


def read_runs(state_dir: Path) -> tuple[Run | UnreadableRun, ...]:
    """Every run, oldest first; a torn one hides no other, and is not left out."""
    return tuple(read_or_say(path) for path in run_dirs(state_dir) if _has_begun(path))


def read_or_say(run_dir: Path) -> Run | UnreadableRun:
    """A run, or why it cannot be read."""
    try:
        return read_run(run_dir)
    except ConfigError as exc:
        return UnreadableRun(run_dir.name, str(exc))


def _has_begun(run_dir: Path) -> bool:
    """Whether there is more than the empty folder of a run that is being made."""
    return (run_dir / INPUTS).exists() or (run_dir / EVENTS).exists()
