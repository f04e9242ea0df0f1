"""Which ranks wait, and which of the others are missing there.

Files, stacks and silence each show a part: a file may be of another time, a stage of a pipeline
waits for one other rank and not for all, and a node without SSH may still run its kernel.
"""

from collections.abc import Mapping, Sequence
from statistics import median_low
from types import MappingProxyType

from brctl.evidence.job.ends import is_leaving
from brctl.evidence.job.signals import was_killed
from brctl.evidence.job.status import DONE_PHASE, WAITING_PHASE
from brctl.evidence.stacks.analyse import in_exchange
from brctl.model.command import KERNEL_RUNS, NO_LOGIN
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.sweeps.report import NodeReport

UNASKED: Mapping[str, NodeReport] = MappingProxyType({})

STEPS_APART = 3
"""No rank is so many steps from those that need it for each: its file was not written since."""

LEAST_WHO_WAIT = 3
"""Of two files one may be left from before a rollback, and neither is the usual one (own)."""


def who_waits(
    status: JobStatus, reports: Mapping[str, NodeReport] = UNASKED
) -> tuple[list[RankView], list[RankView]]:
    """Ranks that wait in the collective, and ranks that live and are elsewhere.

    A phase is written a moment before it is entered: where all stand in one place, all wait.
    """
    waiting, absent = all_elsewhere(status)
    return waiting, _not_in_exchange(absent, status, reports)


def all_elsewhere(status: JobStatus) -> tuple[list[RankView], list[RankView]]:
    """The same, with those that may only wait in an exchange for somebody who is missing."""
    waiting = [v for v in status.ranks if _waits(v)]
    stacks = {v.stack for v in status.ranks if v.alive}
    alike = len(stacks) == 1 and () not in stacks and any(v.alive for v in waiting)
    now = _step_now(waiting, status)
    absent = [
        v for v in status.ranks
        if v.alive and not _waits(v) and _has_place(v) and not is_leaving(v)
        and (v.stopped_by or not alike) and not _is_of_another_time(v, now)
    ]  # fmt: skip
    return waiting, absent if waiting else []


def _waits(view: RankView) -> bool:
    return view.phase == WAITING_PHASE and not view.stopped_by


def left_over(status: JobStatus, reports: Mapping[str, NodeReport]) -> list[RankView]:
    """Ranks that live elsewhere while all others ended waiting: by watchdogs, and by no kill."""
    ended = [v for v in status.ranks if v.alive is False]
    waited = all(
        v.phase == WAITING_PHASE and v.exit_status not in (None, 0) and not was_killed(v)
        for v in ended
    )
    return who_waits(status, reports)[1] if ended and waited else []


def kernel_runs(node: str, reports: Mapping[str, NodeReport]) -> bool:
    """Whether a node that SSH did not reach still answered TCP."""
    return node in reports and reports[node].outcome in KERNEL_RUNS


def waits_for_one(view: RankView) -> bool:
    """Whether it stands in an exchange with one other rank."""
    return not view.stopped_by and in_exchange(view.stack)


def _not_in_exchange(
    absent: list[RankView], status: JobStatus, reports: Mapping[str, NodeReport]
) -> list[RankView]:
    """Without those that send to or receive from another, where somebody else is missing.

    The stages of a pipeline wait for each other's activations while all others reduce. A silent
    node is missing unless nothing but logins fails there: where one worked and then hung, its
    ranks may hang as well.
    """
    missing = [v for v in absent if not waits_for_one(v)]
    logins = all(n in reports and reports[n].outcome in NO_LOGIN for n in status.silent)
    return missing if missing or not logins else absent


def _step_now(waiting: Sequence[RankView], status: JobStatus) -> int | None:
    """The step most of those tell who wait, or of all where few do; None where they disagree."""
    told = waiting if len(waiting) >= LEAST_WHO_WAIT else [v for v in status.ranks if v.alive]
    steps = [view.step for view in told if view.step is not None]
    if not steps:
        return None
    now = median_low(steps)
    near = sum(abs(now - step) < STEPS_APART for step in steps)
    return now if near * 2 > len(steps) else None


def _is_of_another_time(view: RankView, now: int | None) -> bool:
    """Its file tells of a step that those who wait are far from: its stack alone knows of now.

    They are asked together: one file may be left from before the job was taken back.
    """
    if view.stopped_by or view.step is None or now is None:
        return False
    return abs(now - view.step) >= STEPS_APART


def _has_place(view: RankView) -> bool:
    """A phase that was not read accuses nobody; a stopped process is absent wherever it stood."""
    return bool(view.stopped_by) or view.phase not in (None, DONE_PHASE)
