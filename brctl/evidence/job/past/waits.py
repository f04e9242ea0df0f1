"""Waits that a kernel told of, beside what the job did: those its steps outlived say nothing of it.

One that ended may be what stopped a job that has made no step since.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from brctl.evidence.job.history import usual_pace
from brctl.evidence.kernel_ends import HAS_ENDED
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

_ENDED_WAITS = frozenset(kind + HAS_ENDED for kind in _WAITS)

_WHY = f"the job made steps more than {LONG_SINCE.total_seconds() / 60:.0f} min after it"

_NO_STEP_SINCE = "the job is not known to have made a step since"


def with_waits_that_ended(
    evidence: Iterable[Evidence], status: JobStatus, now: datetime
) -> tuple[Evidence, ...]:
    """The evidence, with waits that are over as hints where no step of the job came after them."""
    if status.stalled is False or status.ended:
        return tuple(evidence)
    age_s = status.progress_age_s
    return tuple(_hint(e) if _may_have_stopped_it(e, age_s, now) else e for e in evidence)


def _may_have_stopped_it(item: Evidence, progress_age_s: float | None, now: datetime) -> bool:
    if item.kind not in _ENDED_WAITS:
        return False
    if item.at is None or progress_age_s is None:
        return True
    return (now - item.at).total_seconds() < progress_age_s


def _hint(item: Evidence) -> Evidence:
    text = f"{item.text}; {_NO_STEP_SINCE}"
    return replace(item, weight=Weight.HINTS, role=Role.ROOT, text=text)


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
