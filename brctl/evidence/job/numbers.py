"""Losses that are no numbers, and where they were so first."""

from collections.abc import Iterable

from brctl.evidence.job.status import RANKS_CHECK
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus


def non_finite(status: JobStatus) -> Iterable[Evidence]:
    """A rank-local loss that is not finite names the place where it was so first.

    One step later the gradients have carried it to every rank, which are then victims.
    """
    bad = [view for view in status.ranks if view.loss_finite is False]
    steps = [v.first_nonfinite_step for v in bad if v.first_nonfinite_step is not None]
    first = min(steps, default=None)
    earliest = [view for view in bad if view.first_nonfinite_step == first]
    for view in bad:
        root = view in earliest
        known = root and len(earliest) == 1 and len(steps) == len(bad)
        yield Evidence(
            kind="job.rank.loss",
            subject=Subject(view.node, f"rank:{view.rank}"),
            weight=Weight.CONVICTS if known or len(bad) == 1 else Weight.HINTS,
            fault=FaultClass.NUMERIC_NAN,
            role=Role.ROOT if root else Role.VICTIM,
            source=RANKS_CHECK,
            text=f"the local loss of rank {view.rank} is not finite since step"
            f" {view.first_nonfinite_step}; {len(bad)} of {len(status.ranks)} ranks have none now",
            raw=f"loss_finite=false first_nonfinite_step={view.first_nonfinite_step}",
        )
