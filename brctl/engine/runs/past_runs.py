"""What other runs took out of service, or may take at this moment: what guards count against."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from brctl.engine.runs.read_run import read_runs
from brctl.engine.runs.run_files import RESULT, load_result
from brctl.library.durable_files import set_aside
from brctl.model.errors import ConfigError
from brctl.model.nodeset import fold
from brctl.model.runs.result import PastRun, RunState
from brctl.playbook.run import Run, UnreadableRun, nodes_held, nodes_in_doubt

LOOK_BACK = timedelta(days=7)

_TAKING_RESULTS = frozenset({RunState.OK, RunState.PARTIAL, RunState.NEEDS_HUMAN, RunState.WAITING})


@dataclass(frozen=True, slots=True)
class OtherRuns:
    """The runs beside one run.

    Attributes:
        counted: Those that took nodes, or may while they are alive.
        uncounted: What does not count and why, in sentences.
    """

    counted: tuple[PastRun, ...]
    uncounted: tuple[str, ...]


def other_runs(state_dir: Path, own: str, now: datetime) -> OtherRuns:
    """Every other run of the last days.

    Raises:
        ConfigError: One ended as only a newer brctl knows.
    """
    counted: list[PastRun] = []
    uncounted: list[str] = []
    for run in read_runs(state_dir, now - LOOK_BACK):
        if run.name == own:
            continue
        past = _from_result(state_dir, run) if isinstance(run, UnreadableRun) else _past(run, now)
        if past is not None and now - past.ended_at < LOOK_BACK and _counts(past):
            counted.append(past)
        uncounted += _left_out(run, past)
    return OtherRuns(tuple(counted), tuple(uncounted))


def _counts(past: PastRun) -> bool:
    return past.result in _TAKING_RESULTS or bool(past.taken)


def _past(run: Run, now: datetime) -> PastRun:
    """A run that is alive counts with all it may take: its guards have said so already."""
    if run.state is RunState.UNREADABLE:
        raise ConfigError(f"{run.run_dir}: its result is of a newer brctl")
    held = nodes_held(run.playbook, run.record)
    if run.alive:
        held += run.record.claimed
    elif run.ended_at is None:
        held += nodes_in_doubt(run.playbook, run.record)
    at = now if run.alive or not run.events else run.events[-1].at
    return PastRun(
        run=run.name, playbook=run.playbook.name, taken=tuple(dict.fromkeys(held)), job=run.job,
        result=run.state, exit_code=int(run.state.exit_code), ended_at=at,
    )  # fmt: skip


def _left_out(run: Run | UnreadableRun, past: PastRun | None) -> Iterator[str]:
    """A run that died has let go of what it had not touched, and nobody may wonder about it."""
    if past is None:
        yield f"{run.name} cannot be read, so only its cordons count"
    elif isinstance(run, Run) and run.state is RunState.LOST:
        claims = [node for node in run.record.claimed if node not in past.taken]
        if claims:
            yield f"{run.name} died before it took {fold(claims)}, which does not count"


def _from_result(state_dir: Path, run: UnreadableRun) -> PastRun | None:
    """What is left of a run of which another file is torn."""
    run_dir = state_dir / "runs" / run.name
    try:
        return load_result(run_dir)
    except ConfigError as damaged:
        if isinstance(damaged.__cause__, OSError):
            raise
        set_aside(run_dir / RESULT)
        return None
