"""Links that are down at every node of a job, and were when it made its steps, are the site's.

An adapter's second port that nobody ever plugged in is told of by every kernel at its boot.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from brctl.evidence.job.history import usual_pace
from brctl.evidence.job.past.waits import LONG_SINCE
from brctl.model.evidence import Evidence, Role, Weight
from brctl.model.jobs.job_status import JobStatus

_STATES = frozenset({"host.kernel.nic_unplugged", "host.kernel.nic_link_down"})
"""Kernel lines that tell of a state which may have stood so from the beginning."""

LEAST_NODES = 3
"""Of fewer nodes all may be broken alike (own)."""

_WHY = "it is so at every node of the job, and the job made steps long after"


def without_shared_states(
    evidence: Iterable[Evidence], status: JobStatus, now: datetime
) -> tuple[Evidence, ...]:
    """The evidence, with hints that every node has from long before the newest step as context.

    Steps that became slower, or none, may be of a switch that took all these links away.
    """
    items = tuple(evidence)
    if status.stalled is not False or status.progress_age_s is None or usual_pace(status) is False:
        return items
    latest = now - timedelta(seconds=status.progress_age_s) - LONG_SINCE
    shared = {kind for kind in _STATES if _is_everywhere(kind, items, status, latest)}
    return tuple(_context(item) if item.kind in shared else item for item in items)


def _is_everywhere(
    kind: str, items: Iterable[Evidence], status: JobStatus, latest: datetime
) -> bool:
    told = [item for item in items if item.kind == kind and item.weight is Weight.HINTS]
    nodes = set(status.job.nodes) - set(status.silent)
    old = all(item.at is not None and item.at < latest for item in told)
    return old and len(nodes) >= LEAST_NODES and nodes <= {item.subject.node for item in told}


def _context(item: Evidence) -> Evidence:
    if item.weight is not Weight.HINTS:
        return item
    text = f"{item.text}; {_WHY}"
    return replace(item, weight=Weight.CONTEXT, role=Role.CONTEXT, strength=None, text=text)
