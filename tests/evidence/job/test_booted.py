"""A node that booted while its ranks were in a step is what ended the job."""

from dataclasses import replace

import pytest

from brctl.evidence.job.booted import UPTIME, booted_since
from brctl.model.command import Outcome
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus

JOB = example_job()
GONE = RankView(2, JOB.node_of(2), alive=False, step=40, progress_age_s=100.0)


def named(view: RankView, uptime: float | bool) -> set[str]:
    status = JobStatus(JOB, (view,), 40, 100.0, stalled=True, silent=())
    read = CheckResult("host.kernel", ProbeStatus.MEASURED, (Measurement(UPTIME, "", uptime),))
    reports = {view.node: NodeReport(view.node, Outcome.ANSWERED, (read,))}
    return {item.subject.node for item in booted_since(status, reports)}


def test_a_node_that_booted_after_its_ranks_last_progress_is_named() -> None:
    assert named(GONE, 30.0) == {GONE.node}


@pytest.mark.parametrize(
    ("view", "uptime"),
    [
        (GONE, 5000.0),
        (replace(GONE, exit_status=-15), 30.0),
        (replace(GONE, alive=True), 30.0),
        (replace(GONE, alive=None), 30.0),
        (replace(GONE, progress_age_s=None), 30.0),
        (GONE, True),
    ],
    ids=["up for long", "ended before", "alive", "unread", "no progress known", "no number"],
)
def test_any_other_node_is_not(view: RankView, uptime: float | bool) -> None:
    assert named(view, uptime) == set()
