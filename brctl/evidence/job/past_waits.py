"""Waits that a kernel told of long ago say nothing of a job whose steps went on since."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from brctl.evidence.job.history import usual_pace
from brctl.model.evidence import Evidence, Role, Weight
from brctl.model.jobs.job_status import JobStatus

LONG_SINCE = timedelta(minutes=5)
"""Steps for so long after a line of waiting prove that it is over, or never was theirs (own)."""

_WAITS = frozenset(
    {
        "host.kernel.hung_task", "host.kernel.nfs_hangs", "host.kernel.nic_queue_stuck",
        "host.kernel.nic_link_down",
    }
)  # fmt: skip
"""Kernel lines that tell of something that waits: a job that waited stood still."""

_WHY = f"the job made steps more than {LONG_SINCE.total_seconds() / 60:.0f} min after it"


def without_past_waits(
    evidence: Iterable[Evidence], status: JobStatus, now: datetime
) -> tuple[Evidence, ...]:
    """The evidence, with kernel hints of waits as context where the job made steps long after.

    At their usual pace: slower steps may still be that wait, and an unknown pace proves nothing.
    """
    if status.stalled is not False or status.progress_age_s is None or not usual_pace(status):
        return tuple(evidence)
    latest = now - timedelta(seconds=status.progress_age_s) - LONG_SINCE
    return tuple(_context(item) if _is_past_wait(item, latest) else item for item in evidence)


def _is_past_wait(item: Evidence, latest: datetime) -> bool:
    """A hint of a wait from before this moment; what convicts is no wait that passes."""
    waited = item.kind in _WAITS and item.weight is Weight.HINTS
    return waited and item.at is not None and item.at < latest


def _context(item: Evidence) -> Evidence:
    return replace(
        item, weight=Weight.CONTEXT, role=Role.CONTEXT, strength=None, text=f"{item.text}; {_WHY}"
    )
