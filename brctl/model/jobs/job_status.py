"""A job as its ranks describe it at one moment."""

from dataclasses import dataclass
from statistics import median

from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import SchedulerReason
from brctl.model.jobs.rank_history import RankHistory
from brctl.model.jobs.replay import Replay
from brctl.model.jobs.wrong_number import WrongNumber


@dataclass(frozen=True, slots=True)
class RankView:
    """One rank's last known state; None where it was not measured.

    Attributes:
        wait_s: Time a step spends waiting in collectives: the median of `recent_steps` steps, of
            the last one alone where that is 0.
        step_s: The whole step's time, as `wait_s`.
        load_s: The time to the step's batch, as `wait_s`.
        first_nonfinite_grad_step: First step at which its gradient was no number, before any
            exchange with other ranks.
        loss_off_since: First step whose loss was far above its past, as the rank itself followed
            it; None while all is well, or where it does not.
        phase_longest_s: Its longest earlier stay in `phase`.
        log_age_s: Since its log was written, where steps are read from there: its newest step is
            at least as old.
        row_gap_s: The usual time between two rows of steps there.
        progress_format: Whose rows these are.
        stack: Where its main thread stands, innermost frame first; empty when nobody looked.
        ledger: Its newest steps one by one, where it keeps them.
        replay: What its newest start ran again; None where it was none, or has no digests.
        wrong_numbers: What its own checks found, earliest first.
        has_unread_numbers: Its checks found something that cannot be read.
        compared_tensors: How many it compares with its replicas in every step; None where it does
            not check its numbers at all.
        compared_kind: Part and library, within which ranks are compared; "" where it tells none.
        own_frame: The job's own code it stands in, with no package's code inside of it; "" if none.
    """

    rank: int
    node: str
    alive: bool | None = None
    process_state: str | None = None
    kernel_wait: str = ""
    exit_status: int | None = None
    step: int | None = None
    phase: str | None = None
    phase_age_s: float | None = None
    progress_age_s: float | None = None
    loss_finite: bool | None = None
    first_nonfinite_step: int | None = None
    wait_s: float | None = None
    step_s: float | None = None
    load_s: float | None = None
    recent_steps: int = 0
    grad_finite: bool | None = None
    first_nonfinite_grad_step: int | None = None
    loss_off_since: int | None = None
    phase_longest_s: float | None = None
    stack: tuple[str, ...] = ()
    own_frame: str = ""
    last_words: str = ""
    log_age_s: float | None = None
    row_gap_s: float | None = None
    progress_format: str = ""
    ledger: RankHistory | None = None
    replay: Replay | None = None
    wrong_numbers: tuple[WrongNumber, ...] = ()
    has_unread_numbers: bool = False
    compared_tensors: int | None = None
    compared_kind: str = ""

    @property
    def stopped_by(self) -> str:
        """Who holds its process still wherever it stands; "" where nobody does.

        The freezer of control groups shows as D in its first version, as an ordinary sleep since.
        """
        if self.process_state in _HELD:
            return _HELD[self.process_state]
        frozen = self.kernel_wait.startswith(_FREEZERS)
        return f"frozen by its control group ({self.kernel_wait})" if frozen else ""


_HELD = {"T": "stopped (state T)", "t": "held by a debugger (state t)"}
_FREEZERS = ("do_freezer_trap", "__refrigerator")


@dataclass(frozen=True, slots=True)
class StepWindow:
    """Some of the steps the job made, in numbers; None where none was written.

    Attributes:
        first: Number of its first step.
        step_s: The lower quartile of their times: a passing load slows some of them, a fault all.
        mean_s: Their mean, with every save and evaluation.
        trimmed_mean_s: Their mean without the longest twentieth, which one long step cannot move.
        wait_s: Rank 0's time in collectives.
        load_s: Rank 0's time to its batch.
        nonfinite: Steps without a finite loss.
        tokens: Tokens of a step, of all ranks together.
    """

    first: int
    count: int
    step_s: float | None = None
    wait_s: float | None = None
    load_s: float | None = None
    loss: float | None = None
    grad_norm: float | None = None
    nonfinite: int = 0
    tokens: float | None = None
    mean_s: float | None = None
    trimmed_mean_s: float | None = None


@dataclass(frozen=True, slots=True)
class StepHistory:
    """A job's own past beside its newest steps.

    Attributes:
        past: Windows of earlier steps in order of time, without warm-ups.
        recent: Some seconds of newest steps; None when there are none.
        last: The newest two or three steps alone.
    """

    past: tuple[StepWindow, ...] = ()
    recent: StepWindow | None = None
    last: StepWindow | None = None

    @property
    def step_s(self) -> float | None:
        """The time of its newest steps."""
        return self.recent.step_s if self.recent else None

    @property
    def usual_step_s(self) -> float | None:
        """The time of a step over its past."""
        past = [window.step_s for window in self.past if window.step_s is not None]
        return median(past) if past else None


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A job as its ranks describe it.

    Attributes:
        step: Newest step any rank reported; None when none did.
        stalled: No progress for `job.stall_after_s`, or ranks ended with an error; None when no
            rank, or the progress of none, could be read.
        silent: Nodes of the job that gave no answer at all.
        reasons: What the scheduler says of ranks and nodes that are not well.
    """

    job: Job
    ranks: tuple[RankView, ...]
    step: int | None
    progress_age_s: float | None
    stalled: bool | None
    silent: tuple[str, ...]
    history: StepHistory = StepHistory()
    reasons: tuple[SchedulerReason, ...] = ()

    @property
    def progress_format(self) -> str:
        """Whose rows its steps were read from in logs; "" for progress files."""
        return next((view.progress_format for view in self.ranks if view.progress_format), "")

    @property
    def ended(self) -> bool:
        """Every rank that could be read has ended without an error."""
        known = [view for view in self.ranks if view.alive is not None]
        return bool(known) and all(view.exit_status == 0 for view in known)
