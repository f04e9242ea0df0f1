"""A kernel's waits of long ago, beside a job that makes steps."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from brctl.evidence.job.past_waits import without_past_waits
from brctl.model.evidence import Weight
from brctl.model.fault import FaultClass
from tests.evidence.job.test_outlived import against, status

NOW = datetime(2026, 3, 14, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "fault", "weight", "minutes", "stalled", "counts"),
    [
        ("host.kernel.hung_task", FaultClass.HOST_KERNEL, Weight.HINTS, 60, False, False),
        ("host.kernel.hung_task", FaultClass.HOST_KERNEL, Weight.HINTS, 1, False, True),
        ("host.kernel.hung_task", FaultClass.HOST_KERNEL, Weight.HINTS, 60, True, True),
        ("host.kernel.oops", FaultClass.HOST_KERNEL, Weight.CONVICTS, 60, False, True),
        ("host.kernel.memory_corrected", FaultClass.NODE_FAILURE, Weight.HINTS, 60, False, True),
    ],
)
def test_a_wait_of_long_ago_says_nothing_of_a_job_that_makes_steps(
    kind: str, fault: FaultClass, weight: Weight, minutes: int, stalled: bool, counts: bool
) -> None:
    """A wait would have stopped it; what convicts, and errors of memory, are no waits."""
    told = replace(against(kind, fault), weight=weight, at=NOW - timedelta(minutes=minutes))
    (judged,) = without_past_waits([told], status(stalled=stalled, progress_age_s=0.1), NOW)
    assert (judged.weight is weight) is counts
