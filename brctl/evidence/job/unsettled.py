"""When another look at a job that goes on tells more than this one, and why."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from brctl.evidence.job.pace import is_overdue, late_step_s, until_told_s
from brctl.model.jobs.job_status import JobStatus

SOON_S = 3.0
"""A pause that began a moment ago is a late step by then, or over (own)."""

ENOUGH_STEPS_S = 8.0
"""By then most of a job's newest steps are as they are now, and who is waited for shows (own)."""


class Unsettled(StrEnum):
    """What a job may turn out to be in a moment."""

    LATE = "late"
    OVERDUE = "overdue"
    SILENT = "silent"
    YOUNG = "young"


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Why to look again, and in how many seconds."""

    why: Unsettled
    in_s: float


def look_again(status: JobStatus, seen: Collection[Unsettled] = ()) -> LookAgain | None:
    """The look that would tell more; None where the job stands still, has ended or is settled.

    Nothing is waited for twice, and nothing more once a late step was.
    """
    if status.stalled is not False or status.ended or Unsettled.LATE in seen:
        return None
    if late_step_s(status) is not None:
        return LookAgain(Unsettled.LATE, until_told_s(status))
    young = status.history.recent is not None and not status.history.past
    signs = (
        (is_overdue(status), LookAgain(Unsettled.OVERDUE, SOON_S)),
        (bool(status.silent), LookAgain(Unsettled.SILENT, SOON_S)),
        (young, LookAgain(Unsettled.YOUNG, ENOUGH_STEPS_S)),
    )
    return next((again for shows, again in signs if shows and again.why not in seen), None)
