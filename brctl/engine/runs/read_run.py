"""Read a run from its folder: its files, its journal, and whether a process owns it."""

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from brctl.engine.controller.clock import now
from brctl.engine.runs.run_files import (
    PLAN,
    REQUEST,
    changed_playbook,
    listed_playbook,
    load_inputs,
    load_request,
    read_json,
)
from brctl.journal.chain_key import own_key
from brctl.journal.follow import START_GRACE_S
from brctl.journal.store import EVENTS, is_running, read_journal, run_dirs
from brctl.model.errors import BrctlError, ConfigError
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.playbook import Arguments, Playbook
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
    recording = read_journal(run_dir, own_key())
    return Run(
        name=run_dir.name,
        run_dir=run_dir,
        playbook=playbook,
        record=replay(playbook, recording.events),
        events=recording.events,
        damage=(
            *recording.damage,
            *recording.stripped,
            *_tampered(run_dir, playbook, recording.events),
        ),
        # After its last line a process still needs a moment to leave.
        alive=is_running(run_dir) and not recording.ended,
        never_began=not recording.events and _had_time_to_start(run_dir),
        by=load_request(run_dir).by,
        verdict_id=inputs.verdict_id,
        verdict=inputs.verdict,
        job=str(inputs.job.get("name") or ""),
        nodes=nodes_named(playbook, inputs.inputs),
        guards=_guards(run_dir, recording.events),
    )


def _tampered(run_dir: Path, playbook: Playbook, events: Sequence[Event]) -> Iterator[str]:
    changed = changed_playbook(run_dir, playbook, events) if (run_dir / PLAN).exists() else ""
    if changed:
        yield changed


def _guards(run_dir: Path, events: Sequence[Event]) -> tuple[Arguments, ...]:
    checked = next((e for e in reversed(events) if e.type is EventType.GUARDS_CHECKED), None)
    if checked is None and not (run_dir / PLAN).exists():
        return ()
    rows = checked.fields.get("guards") if checked else read_json(run_dir / PLAN).get("guards")
    return tuple(row for row in rows if isinstance(row, dict)) if isinstance(rows, list) else ()


def read_runs(state_dir: Path, since: datetime | None = None) -> tuple[Run | UnreadableRun, ...]:
    """Every run, oldest first; a torn one hides no other, and is not left out.

    With `since` those that are over, and whose journal was not written to after that moment, are
    not even opened.
    """
    return tuple(
        read_or_say(path)
        for path in run_dirs(state_dir)
        if _has_begun(path) and (since is None or _was_touched(path, since))
    )


def sound_runs(state_dir: Path, since: datetime | None = None) -> tuple[Run, ...]:
    """The runs that can be read; each of the others is named on stderr, once a process."""
    found = read_runs(state_dir, since)
    for run in found:
        if isinstance(run, UnreadableRun):
            _warn_of(state_dir, run)
    return tuple(run for run in found if isinstance(run, Run))


@lru_cache(maxsize=256)
def _warn_of(_state_dir: Path, run: UnreadableRun) -> None:
    """A command asks for all runs several times; nobody reads the same line several times."""
    logging.getLogger(__name__).warning("warning: %s; it is left out", run.why)


def read_or_say(run_dir: Path) -> Run | UnreadableRun:
    """A run, or why it cannot be read."""
    try:
        return read_run(run_dir)
    except ConfigError as exc:
        return UnreadableRun(run_dir.name, str(exc))


def _has_begun(run_dir: Path) -> bool:
    """Whether there is more than the folder of a run that is being made, or never was made whole.

    Its request is the last file that is written before its process is started.
    """
    return (run_dir / REQUEST).exists() or (run_dir / EVENTS).exists()


def _had_time_to_start(run_dir: Path) -> bool:
    """Whether a process, had there been one, would have written the first line by now."""
    return now().timestamp() - (run_dir / REQUEST).stat().st_mtime > START_GRACE_S


def _was_touched(run_dir: Path, since: datetime) -> bool:
    path = run_dir / EVENTS
    newest = (path if path.exists() else run_dir).stat().st_mtime
    return newest >= since.timestamp() or is_running(run_dir)
