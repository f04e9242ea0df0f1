"""When another look at a job that goes on tells more than this one, and why."""

from dataclasses import dataclass
from enum import StrEnum

from brctl.evidence.job.pace import is_overdue, late_step_s, until_told_s
from brctl.model.jobs.job_status import JobStatus

SOON_S = 3.0
"""What began a moment ago shows by then: a step that is late, ranks that others wait for (own)."""


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


def look_again(status: JobStatus) -> LookAgain | None:
    """The look that would tell more; None where the job stands still, has ended or is settled."""
    if status.stalled is not False or status.ended:
        return None
    if late_step_s(status) is not None:
        return LookAgain(Unsettled.LATE, until_told_s(status))
    signs = {
        Unsettled.OVERDUE: is_overdue(status),
        Unsettled.SILENT: bool(status.silent),
        Unsettled.YOUNG: status.history.recent is not None and not status.history.past,
    }
    return next((LookAgain(why, SOON_S) for why, seen in signs.items() if seen), None)
