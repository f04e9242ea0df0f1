"""How long a playbook took before, from the journals of its runs."""

from collections.abc import Iterable, Sequence

from brctl.model.runs.estimate import Took
from brctl.model.runs.event import EventType
from brctl.model.runs.result import RunState
from brctl.playbook.run import Run

STARTS_JOBS = "job.restart"
NEWEST = 9
"""Runs that count: a job and its file system change, and the oldest tell least."""


def earlier_runs(runs: Iterable[Run], playbook: str, job: str) -> Took | None:
    """The newest good runs of a playbook, those about the job if there are any."""
    good = [r for r in runs if r.playbook.name == playbook and r.state is RunState.OK]
    same = [r for r in good if r.job == job]
    chosen: Sequence[Run] = (same or good)[-NEWEST:]
    if not chosen:
        return None
    return Took(tuple(sorted(map(worked_s, chosen))), same_job=bool(same))


def worked_s(run: Run) -> float:
    """Seconds of its steps: what it waited for people is not the playbook's."""
    spent = (e.fields.get("seconds") for e in run.events if e.type is EventType.STEP_RESULT)
    return float(sum(s for s in spent if isinstance(s, int | float)))
