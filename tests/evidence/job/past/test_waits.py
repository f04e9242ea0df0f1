"""A kernel's waits of long ago, beside a job that makes steps."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from brctl.evidence.job.past.waits import with_waits_that_ended, without_past_waits
from brctl.model.evidence import Role, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import StepHistory
from tests.evidence.job.past.test_outlived import against, status
from tests.evidence.job.test_cpu_waits import SLOWER, STEADY

NOW = datetime(2026, 3, 14, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "fault", "weight", "minutes", "stalled", "counts"),
    [
        ("host.kernel.hung_task", FaultClass.HOST_KERNEL, Weight.HINTS, 60, False, False),
        ("host.kernel.hung_task", FaultClass.HOST_KERNEL, Weight.HINTS, 1, False, True),
        ("host.kernel.hung_task", FaultClass.HOST_KERNEL, Weight.HINTS, 60, True, True),
        ("host.kernel.oops", FaultClass.HOST_KERNEL, Weight.CONVICTS, 60, False, True),
        ("host.kernel.nfs_hangs", FaultClass.STORAGE_CHECKPOINT, Weight.HINTS, 60, False, False),
        ("host.kernel.disk_error", FaultClass.STORAGE_CHECKPOINT, Weight.HINTS, 60, False, True),
        ("host.kernel.nic_hot", FaultClass.NETWORK_IB, Weight.HINTS, 60, False, True),
        ("host.kernel.nic_unplugged", FaultClass.NETWORK_LINK, Weight.HINTS, 60, False, True),
        ("host.kernel.memory_corrected", FaultClass.NODE_FAILURE, Weight.HINTS, 60, False, True),
    ],
)
def test_a_wait_of_long_ago_says_nothing_of_a_job_that_makes_steps(
    kind: str, fault: FaultClass, weight: Weight, minutes: int, stalled: bool, counts: bool
) -> None:
    """A wait would have stopped it; heat, a cable, a bad disk and bad memory are no waits."""
    told = replace(against(kind, fault), weight=weight, at=NOW - timedelta(minutes=minutes))
    job = status(stalled=stalled, progress_age_s=0.1, history=STEADY)
    (judged,) = without_past_waits([told], job, NOW)
    assert (judged.weight is weight) is counts


@pytest.mark.parametrize("history", [SLOWER, StepHistory()])
def test_a_wait_counts_where_steps_are_slower_or_nobody_knows_how_they_were(
    history: StepHistory,
) -> None:
    told = against("host.kernel.hung_task", FaultClass.HOST_KERNEL)
    told = replace(told, weight=Weight.HINTS, at=NOW - timedelta(minutes=60))
    job = status(stalled=False, progress_age_s=0.1, history=history)
    assert without_past_waits([told], job, NOW) == (told,)


@pytest.mark.parametrize(
    ("kind", "ended_min", "step_min", "stalled", "counts"),
    [
        ("nfs_hangs", 5, 25, True, True),
        ("nfs_hangs", 5, 25, None, True),
        ("nfs_hangs", 5, None, None, True),
        ("nfs_hangs", 5, 25, False, False),
        ("nfs_hangs", 180, 25, True, False),
        ("cpu_throttled", 5, 25, True, False),
    ],
)
def test_a_wait_that_ended_is_a_hint_where_the_job_made_no_step_after_it(
    kind: str, ended_min: int, step_min: int | None, stalled: bool | None, counts: bool
) -> None:
    """A server that is back does not bring back the job that its silence ended."""
    told = against(f"host.kernel.{kind}.ended", FaultClass.STORAGE_CHECKPOINT)
    at = NOW - timedelta(minutes=ended_min)
    told = replace(told, weight=Weight.CONTEXT, role=Role.CONTEXT, strength=None, at=at)
    age_s = None if step_min is None else step_min * 60.0
    job = status(stalled=stalled, progress_age_s=age_s)
    (judged,) = with_waits_that_ended([told], job, NOW)
    assert (judged.weight is Weight.HINTS) is counts
    assert (judged.role is Role.ROOT) is counts
