"""How long a job may go without progress before it stands still: its own steps say."""

from collections.abc import Iterable, Sequence
from statistics import median

from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus, RankView, StepHistory

STEPS_STILL = 1.5
"""Between two phases of a sound step never passes more than a step; half of one is for unrest."""

ROWS_MISSED = 3
"""So many times the usual time between two rows of a log without one is a stall."""

STEPS_LATE, LEAST_LATE_S = 5.0, 2.0
"""A step that takes so many times its usual time, and so long, is late: a person wonders (own)."""

LONGEST_STEP_S = 1800.0
"""What claims to take longer is taken for as long (own): it would keep a stall from being told."""


def stands_after_s(job: Job, ranks: Sequence[RankView], history: StepHistory) -> float:
    """What job.yaml says, or longer where its usual steps, or the rows of its log, take longer."""
    gaps_s = [min(v.row_gap_s, LONGEST_STEP_S) for v in ranks if v.row_gap_s is not None]
    still_s = STEPS_STILL * min(_usual_step_s(ranks, history), LONGEST_STEP_S)
    return max(job.stall_after_s, still_s, ROWS_MISSED * max(gaps_s, default=0.0))


def patience_s(status: JobStatus) -> float:
    """The same of a job whose ranks were read."""
    return stands_after_s(status.job, status.ranks, status.history)


def late_step_s(status: JobStatus) -> float | None:
    """The usual time of a step of a job that has waited much longer for one, and is no stall yet.

    None where it is not late, or nobody knows what is usual.
    """
    overdue = is_overdue(status) and (status.progress_age_s or 0.0) >= LEAST_LATE_S
    return _usual_step_s(status.ranks, status.history) if overdue else None


def is_overdue(status: JobStatus) -> bool:
    """Whether a step takes so many times its usual time, be it a pause of a moment."""
    usual_s, age_s = _usual_step_s(status.ranks, status.history), status.progress_age_s
    if status.stalled is not False or status.ended or age_s is None or not usual_s:
        return False
    return age_s >= STEPS_LATE * usual_s


def until_told_s(status: JobStatus) -> float:
    """Seconds until a job without a new step stands still."""
    return max(0.0, patience_s(status) - (status.progress_age_s or 0.0))


def _usual_step_s(ranks: Sequence[RankView], history: StepHistory) -> float:
    """Of its ranks now or of its past, whichever is longer; 0 where nobody knows."""
    return max(_median(v.step_s for v in ranks), _median(w.step_s for w in history.past))


def _median(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return median(known) if known else 0.0


def is_in_first_step(status: JobStatus) -> bool:
    """No rank has ended a step: nobody knows how long one takes.

    A job that tells no times of its steps is known by its count of them.
    """
    untold = all(view.step_s is None for view in status.ranks)
    return untold and status.step is not None and status.step <= 1
