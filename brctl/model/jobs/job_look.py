"""What the last look at a job saw: kept, so that the next one can say what changed."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class JobState(StrEnum):
    """What a look makes of a job."""

    PROGRESSING = "progressing"
    STALLED = "stalled"
    ENDED = "ended"
    STOPPED = "stopped"
    """It takes no steps, and brctl itself stopped it or is at work on it."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class JobLook:
    """A job at one moment.

    Attributes:
        step: Newest step any rank reported; None when none did.
        progress_age_s: Since its newest sign of progress.
        step_s: Its newest steps' time; None when the job writes no step times.
        usual_step_s: The same over its past.
        because: Which run stopped it; which nodes of an unknown one do not answer.
        verdict_id: What was decided about this stall; "" when nothing could be, or nobody looked.
        step_seen_at: The first look that saw this step; None in looks of older versions.
        told: Cron has told of this trouble, and need not again.
    """

    job: str
    at: datetime
    state: JobState
    step: int | None
    progress_age_s: float | None
    step_s: float | None = None
    usual_step_s: float | None = None
    because: str = ""
    verdict_id: str = ""
    told: bool = False
    step_seen_at: datetime | None = None

    @property
    def in_trouble(self) -> bool:
        """It takes no steps, or nobody knows, and that was not brctl's doing."""
        return self.state in (JobState.STALLED, JobState.UNKNOWN)

    def is_the_trouble_of(self, before: "JobLook") -> bool:
        """It was in this trouble at the look before, and took no step in between."""
        return self.in_trouble and (before.state, before.step) == (self.state, self.step)
