"""job.wait_progress: wait until training has passed the step at which it had stopped.

Steps beyond the checkpoint prove nothing by themselves: a job that falls at the same step each time
takes them too. A job that hangs as before keeps its ranks alive until a time-out of its own: where
it stands still and a look finds the verdict's fault again, that is waited for no longer. Steps
whose loss is no number or far above its past, or in which ranks find wrong numbers themselves,
prove nothing either.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median_low

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, FailureKind, ReadOnly
from brctl.evidence.job.data.replays import replay_note
from brctl.evidence.job.history import jumps
from brctl.model.evidence_kinds import LOSS_JUMPED
from brctl.model.jobs.job_status import JobStatus
from brctl.model.runs.playbook import Arguments
from brctl.model.units import describe_duration

POLL_S = 1.0

UNKNOWN_FACTOR = 4
"""Where nobody knows at which step it had stopped, so many times the steps are asked for."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What has to be seen.

    Attributes:
        steps: New steps beyond all that is known.
        beyond: Step of the checkpoint it starts from: a job that is loading still shows step 0.
        stopped_at: Step at which it had stopped; 0 when nobody knows, None when nobody was asked.
    """

    steps: int
    beyond: int
    stopped_at: int | None

    def step(self, first: int) -> int:
        """The step at which it is proved, counted from the first one seen."""
        factor = UNKNOWN_FACTOR if self.stopped_at == 0 else 1
        return max(first, self.beyond, self.stopped_at or 0) + self.steps * factor

    @property
    def note(self) -> str:
        """What that proves."""
        if self.stopped_at is None:
            return ""
        if self.stopped_at == 0:
            return "; at which step it had stopped is not known"
        return f"; it had stopped at step {self.stopped_at}"


class JobWaitProgress(ReadOnly):
    """Fails when no new step comes for `within`, or when `at_most` is over before the goal."""

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        goal, within_s = read_goal(args), arguments.seconds(args, "within", "10m")
        at_most_s = arguments.seconds(args, "at_most", f"{within_s}s")
        job = await context.jobs.get(arguments.text(args, "job"))
        stall = _SameStall(context, str(args.get("verdict") or ""))
        jump = _JumpAgain()
        started = moved = context.clock.now()
        first: int | None = None
        last: int | None = None
        while True:
            status = await context.jobs.progress(job)
            _refuse_ended(status)
            now = context.clock.now()
            jump.see(status)
            if status.step is not None:
                first = status.step if first is None else first
                moved = now if status.step != last else moved
                last = status.step
                if last >= goal.step(first):
                    jump.refuse(last)
                if last >= goal.step(first) and not _wrong_numbers(status):
                    return _proved(status, max(first, goal.beyond), last, goal)
                _refuse_wrong_numbers(status, last, goal.step(first) + goal.steps)
            await stall.refuse(status, now)
            _refuse_late(last, goal, _since(moved, now), within_s)
            if _since(started, now) >= at_most_s:
                raise ActionFailed(_unproved(last, goal, at_most_s), FailureKind.TIMEOUT)
            await context.clock.pause(POLL_S)


def _proved(status: JobStatus, since: int, last: int, goal: Goal) -> ActionResult:
    replayed = replay_note(status)
    say = f"step {since} to {last}{goal.note}" + (f"; {replayed}" if replayed else "")
    return ActionResult({"first_step": since, "step": last}, changed=False, say=say)


class _JumpAgain:
    """Whether the loss jumps in this attempt, also where it has come down since.

    Progress files of the attempt before may say that it was off: it counts once it was well.
    """

    def __init__(self) -> None:
        self._was_well = False
        self._at: int | None = None

    def see(self, status: JobStatus) -> None:
        off = [view.loss_off_since for view in status.ranks if view.loss_off_since is not None]
        self._was_well = self._was_well or not off
        if self._was_well and 2 * len(off) > len(status.ranks):
            self._at = median_low(off)

    def refuse(self, last: int) -> None:
        if self._at is not None:
            raise ActionFailed(
                f"step {last}, and the loss jumped again at step {self._at}: what bent it is in the"
                " job still"
            )


class _SameStall:
    """Whether a job that was started again stands still for the fault it had before."""

    def __init__(self, context: RunContext, verdict_id: str) -> None:
        self._context = context
        self._verdict_id = verdict_id
        self._first: tuple[datetime, int | None] | None = None
        self._asked = False

    async def refuse(self, status: JobStatus, now: datetime) -> None:
        """Ask once in each stall; what was written before the start is no sign of this attempt."""
        age_s = status.progress_age_s
        if not self._verdict_id or age_s is None:
            return
        sign = now - timedelta(seconds=age_s)
        first_sign, first_step = self._first = self._first or (sign, status.step)
        this_attempt = status.step != first_step or _since(first_sign, sign) >= POLL_S
        self._asked = self._asked and status.stalled is True
        if status.stalled and this_attempt and not self._asked:
            self._asked = True
            verdict = self._context.verdicts.get(self._verdict_id)
            if await self._context.verdicts.still_true(verdict):
                raise ActionFailed(
                    f"no progress for {describe_duration(age_s)} at step {status.step}, and"
                    f" {verdict.fault.value} is found again"
                )


def read_goal(args: Arguments) -> Goal:
    """The goal of a step's arguments; of several steps at which it may have stopped the last."""
    stopped: int | None = None
    if "stopped_at" in args:
        value = args["stopped_at"]
        known = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        numbers = [v for v in known if isinstance(v, int) and not isinstance(v, bool)]
        stopped = max(numbers, default=0)
    return Goal(arguments.count(args, "steps", 1), arguments.count(args, "beyond", 0), stopped)


def _since(earlier: datetime, now: datetime) -> float:
    return (now - earlier).total_seconds()


def _refuse_late(last: int | None, goal: Goal, still_s: float, within_s: float) -> None:
    if still_s >= within_s:
        progress = f"step {last}" if last is not None else "no step at all"
        raise ActionFailed(f"{progress} after {within_s:g} s{goal.note}", FailureKind.TIMEOUT)


def _unproved(last: int | None, goal: Goal, at_most_s: float) -> str:
    progress = f"step {last} and going on" if last is not None else "no step at all"
    return f"{progress} after {describe_duration(at_most_s)}, which proves nothing yet{goal.note}"


def _refuse_wrong_numbers(status: JobStatus, last: int, latest: int) -> None:
    """One step without a number may be skipped, as loss scalers do; several are no training."""
    wrong = _wrong_numbers(status)
    if wrong and last >= latest:
        raise ActionFailed(f"step {last}, and {wrong}: it trains on, and not rightly")


def _wrong_numbers(status: JobStatus) -> str:
    """What is wrong with the numbers of the newest steps; "" for nothing that is known.

    Read once the job has taken steps: until then its files are those of the attempt before.
    """
    found = [view for view in status.ranks if view.wrong_numbers]
    if found:
        first = found[0]
        return (
            f"{len(found)} of {len(status.ranks)} ranks find wrong numbers, rank {first.rank} on"
            f" {first.node} since step {first.wrong_numbers[0].step}"
        )
    if bad := sum(view.loss_finite is False for view in status.ranks):
        return f"the loss of {bad} of {len(status.ranks)} ranks is not finite"
    newest = status.history.last
    if newest is not None and newest.nonfinite:
        return "the newest loss is not finite"
    return next((item.text for item in jumps(status) if item.kind == LOSS_JUMPED), "")


def _refuse_ended(status: JobStatus) -> None:
    for view in status.ranks:
        if view.alive is False and view.exit_status not in (None, 0):
            raise ActionFailed(f"rank {view.rank} on {view.node} ended with {view.exit_status}")
