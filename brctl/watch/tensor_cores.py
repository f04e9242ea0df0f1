"""Tensor-core activity of a job over time: idle cores tell of a stall before its steps do."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from brctl.evidence.job.long_phases import at_work
from brctl.evidence.operators import is_number
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import CheckResult
from brctl.model.watch.state import Sighting

RULE, ACTIVITY_CHECK = "tensor-idle", "gpu.clocks"
MEASUREMENT = "gpu.clocks.tensor_pct"

LOW_SHARE, LOW_S = 0.1, 60.0
"""Less than this share of the job's own median for so long (own; the paper gives no number)."""

LONGER_THAN_EVER, AT_MOST_S = 2.0, 600.0
"""Jobs compute in bursts: only what lasts twice as long as the longest lull before is one no more,
or as long as silence on RDMA may last (own)."""

LEARNED_LOOKS, KEPT_LOOKS = 10, 120
"""Five minutes tell a job's median; it is that of its last hour."""

LEAST_PCT = 1.0
"""A job that hardly uses its tensor cores says nothing by leaving them idle."""


@dataclass(frozen=True, slots=True)
class Activity:
    """How busy the tensor cores of a job's nodes were, by a monotonic clock.

    Attributes:
        looks: Of each node, the look that was read last.
        busy_pct: Readings while it worked, oldest first; a low one is none of them.
        low_since_s: The first of the low readings that it is in now.
        longest_low_s: The longest that low readings lasted before.
    """

    nodes: tuple[str, ...]
    looks: tuple[int, ...]
    read_s: float
    busy_pct: tuple[float, ...] = ()
    low_since_s: float | None = None
    longest_low_s: float = 0.0

    @property
    def usual_pct(self) -> float | None:
        """The job's own median; None while it is not known, or too small to say anything."""
        if len(self.busy_pct) < LEARNED_LOOKS:
            return None
        usual = median(self.busy_pct)
        return usual if usual >= LEAST_PCT else None

    @property
    def low_s(self) -> float:
        """From the first of its low readings to the newest."""
        return 0.0 if self.low_since_s is None else self.read_s - self.low_since_s


def activity_pct(results: Iterable[CheckResult]) -> float | None:
    """The median over all GPUs; None where a node tells of none of its own."""
    found: list[float] = []
    for result in results:
        values = [m.value for m in result.measurements if m.name == MEASUREMENT]
        known = [float(v) for v in values if is_number(v) and 0 <= v <= 100]
        if not known:
            return None
        found += known
    return median(found) if found else None


def after_reading(
    before: Activity | None,
    pct: float,
    nodes: tuple[str, ...],
    looks: Sequence[int],
    seconds: float,
    *,
    excused: bool,
) -> Activity:
    """The job's activity once each of its nodes was looked at again.

    Args:
        before: After the reading before; None at the first one.
        pct: The median over all GPUs of these nodes.
        nodes: Where the job runs now.
        looks: The newest look of each of them.
        seconds: Of a monotonic clock.
        excused: A rank evaluates, saves or compiles: what is read meanwhile is not its work.
    """
    if before is None or nodes != before.nodes:
        return Activity(nodes, tuple(looks), seconds, () if excused else (pct,))
    if any(now == then for now, then in zip(looks, before.looks, strict=True)):
        return before
    now = replace(before, looks=tuple(looks), read_s=seconds)
    if excused:
        return replace(now, low_since_s=None)
    usual = before.usual_pct
    if usual is not None and pct < LOW_SHARE * usual:
        return now if before.low_since_s is not None else replace(now, low_since_s=seconds)
    return replace(
        now,
        busy_pct=(*before.busy_pct, pct)[-KEPT_LOOKS:],
        low_since_s=None,
        longest_low_s=max(before.longest_low_s, before.low_s),
    )


def activity_sightings(
    status: JobStatus, activity: Activity, look: int, same_step_s: float
) -> Iterator[Sighting]:
    """Idle tensor cores while ranks live and none is at its next step.

    Args:
        status: The job now.
        activity: As of the newest reading of all its nodes.
        look: Number of this look.
        same_step_s: For how long no rank was seen at another step or in another phase.
    """
    limit_s = min(AT_MOST_S, max(LOW_S, LONGER_THAN_EVER * activity.longest_low_s))
    if activity.low_s < limit_s or same_step_s < LOW_S or activity.usual_pct is None:
        return
    if status.ended or not any(view.alive for view in status.ranks) or at_work(status):
        return
    text = (
        f"tensor cores below {LOW_SHARE:.0%} of their usual {activity.usual_pct:.3g} % for"
        f" {activity.low_s:.0f} s, and no step"
    )
    yield Sighting(RULE, status.job.name, look, text)
