"""Who slows a job that still moves."""

from collections.abc import Iterable
from statistics import median

from brctl.evidence.job.status import RANKS_CHECK
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus

SLOW_WAIT_FLOOR_S = 0.5
SLOW_WAIT_RATIO = 0.25
"""A straggler waits under a quarter of the median; below half a second waiting is noise."""


def straggler(status: JobStatus) -> Iterable[Evidence]:
    """The rank that waits least for the others is the one they wait for."""
    waits = {view: view.wait_s for view in status.ranks if view.wait_s is not None and view.alive}
    if len(waits) < 3 or status.stalled:
        return
    typical = median(waits.values())
    slowest = min(waits, key=lambda view: (waits[view], view.rank))
    if typical < SLOW_WAIT_FLOOR_S or waits[slowest] > SLOW_WAIT_RATIO * typical:
        return
    yield Evidence(
        kind="job.rank.waits-least",
        subject=Subject(slowest.node, f"rank:{slowest.rank}"),
        weight=Weight.CONVICTS,
        fault=FaultClass.STRAGGLER_SLOW,
        role=Role.ROOT,
        source=RANKS_CHECK,
        text=f"rank {slowest.rank} waits {waits[slowest]:.2f} s for the others,"
        f" who wait {typical:.2f} s: they wait for it",
        raw=f"wait_s={waits[slowest]} median={typical}",
    )
