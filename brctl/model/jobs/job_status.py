"""A job as its ranks describe it at one moment."""

from dataclasses import dataclass

from brctl.model.jobs.job import Job


@dataclass(frozen=True, slots=True)
class RankView:
    """One rank's last known state; None where it was not measured."""

    rank: int
    node: str
    alive: bool | None = None
    process_state: str | None = None
    exit_status: int | None = None
    step: int | None = None
    phase: str | None = None
    phase_age_s: float | None = None
    progress_age_s: float | None = None
    loss_finite: bool | None = None
    first_nonfinite_step: int | None = None
    wait_s: float | None = None
    last_words: str = ""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A job as its ranks describe it.

    Attributes:
        step: Newest step any rank reported; None when none did.
        stalled: No progress for `job.stall_after_s`, or ranks ended with an error; None when no
            rank, or the progress of none, could be read.
        silent: Nodes of the job that gave no answer at all.
    """

    job: Job
    ranks: tuple[RankView, ...]
    step: int | None
    progress_age_s: float | None
    stalled: bool | None
    silent: tuple[str, ...]

    @property
    def ended(self) -> bool:
        """Every rank that could be read has ended without an error."""
        known = [view for view in self.ranks if view.alive is not None]
        return bool(known) and all(view.exit_status == 0 for view in known)
