"""Whoever looks a moment after it happened is told to look again, not that all is well."""

from dataclasses import replace

import pytest

from brctl.evidence.job.unsettled import ENOUGH_STEPS_S, SOON_S, LookAgain, Unsettled, look_again
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus, RankView, StepHistory, StepWindow
from brctl.view.verdict import look_again_line

JOB = replace(example_job(), stall_after_s=15.0)
RECENT = StepWindow(10, 6, step_s=0.1)
PAST = StepHistory((StepWindow(1, 10, step_s=0.1),), RECENT)


def running(age_s: float, **values: object) -> JobStatus:
    ranks = (RankView(0, JOB.nodes[0], alive=True, step=16, step_s=0.1),)
    status = JobStatus(JOB, ranks, 16, age_s, stalled=False, silent=(), history=PAST)
    return replace(status, **values)  # type: ignore[arg-type]  # the fields a case is about


@pytest.mark.parametrize(
    ("status", "again"),
    [
        (running(0.2), None),
        (running(0.9), LookAgain(Unsettled.OVERDUE, SOON_S)),
        (running(5.0), LookAgain(Unsettled.LATE, 10.0)),
        (running(0.2, silent=("n4",)), LookAgain(Unsettled.SILENT, SOON_S)),
        (running(0.2, history=StepHistory((), RECENT)), LookAgain(Unsettled.YOUNG, ENOUGH_STEPS_S)),
        (running(0.2, history=StepHistory()), None),
        (running(20.0, stalled=True, silent=("n4",)), None),
        (running(5.0, stalled=None), None),
    ],
)
def test_a_job_that_goes_on_is_looked_at_again_where_a_moment_tells_more(
    status: JobStatus, again: LookAgain | None
) -> None:
    assert look_again(status) == again


def test_nothing_is_waited_for_twice_and_nothing_after_a_late_step() -> None:
    """A job of few steps whose step is overdue is looked at for both, one after the other."""
    young = running(0.9, history=StepHistory((), RECENT))
    assert look_again(young, {Unsettled.OVERDUE}) == LookAgain(Unsettled.YOUNG, ENOUGH_STEPS_S)
    assert look_again(young, {Unsettled.OVERDUE, Unsettled.YOUNG}) is None
    assert look_again(running(5.0), {Unsettled.OVERDUE}) == LookAgain(Unsettled.LATE, 10.0)
    assert look_again(young, {Unsettled.LATE}) is None


def test_the_wait_says_what_it_is_for() -> None:
    late = look_again_line(running(5.0), LookAgain(Unsettled.LATE, 10.0))
    silent = look_again_line(running(0.2, silent=("n4",)), LookAgain(Unsettled.SILENT, SOON_S))
    assert late == ("no progress for 5.0 s, a step usually takes 0.1 s; looking again in 10 s")
    assert silent == "n4 gave no answer, and the job makes progress; looking again in 3 s"
