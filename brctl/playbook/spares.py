"""How many standbys a fleet needs: the losses of a day, and the largest group ever evicted at once.

ByteRobust (arXiv 2509.16293, section 6.2) keeps the 99th percentile of simultaneous single-machine
losses, taken as binomial over the machines with their daily failure rate. The paper does not print
that rate; its Table 5 (2, 2, 3, 4 standbys for 128, 256, 512, 1024 machines) comes out for every
rate between 0.001165 and 0.001249 a day.
"""

from dataclasses import dataclass
from math import ceil, exp, inf
from statistics import NormalDist

from brctl.model.jobs.job import Job

PAPER_DAILY_RATE = 0.0012
DEFAULT_RISK = 0.99
SECONDS_A_DAY = 86400
MANY_LOSSES = 500.0
"""From here on a Poisson count is as good as normal, and the chance of none too small to add up."""
EVICTED_TOGETHER = ("tp", "pp", "ep", "cp")
"""Axes whose groups are evicted whole; a data-parallel group is the whole job."""


@dataclass(frozen=True, slots=True)
class PoolSize:
    """What a pool must hold, and why.

    Attributes:
        losses: Simultaneous losses not exceeded with probability `risk`.
        group: Nodes the largest parallel group spans.
        group_axis: The axis of that group, "" when every group fits on one node.
        daily_rate: Failures per node and day that were assumed.
        refill_days: Until a standby that was taken is replaced; None counts the losses of one day.
    """

    machines: int
    daily_rate: float
    risk: float
    losses: int
    group: int
    group_axis: str
    refill_days: float | None = None

    @property
    def needed(self) -> int:
        """Standbys to keep: the larger of the two."""
        return max(self.losses, self.group)

    @property
    def rules(self) -> str:
        """Which of the two decides."""
        if self.group > self.losses and self.group_axis:
            return f"the largest {self.group_axis} group"
        if self.group > self.losses:
            return "the smallest loss there is, one node"
        counted = "at once" if self.refill_days is None else "until a refill"
        return f"P{self.risk * 100:g} of losses {counted}"


def losses_at_once(machines: int, daily_rate: float, risk: float = DEFAULT_RISK) -> int:
    """The smallest k with P(losses in a day <= k) >= risk.

    Examples:
        >>> [losses_at_once(n, 0.0012) for n in (128, 256, 512, 1024)]
        [2, 2, 3, 4]
    """
    if not 0 <= daily_rate < 1 or not 0 < risk < 1:
        raise ValueError("a rate is between 0 and 1, a risk too")
    # P(0), then each next term from the last: no factorials, exact enough for any fleet.
    term = (1 - daily_rate) ** machines
    total, losses = term, 0
    while total < risk and losses < machines:
        term *= (machines - losses) / (losses + 1) * daily_rate / (1 - daily_rate)
        losses += 1
        total += term
    return losses


def losses_within(nodes: int, daily_rate: float, days: float, risk: float = DEFAULT_RISK) -> int:
    """Standbys that last until a lost one is replaced after so many days (Poisson).

    Examples:
        >>> [losses_within(1200, 0.0012, days) for days in (0.25, 1, 2, 3, 7)]
        [2, 5, 7, 10, 18]
    """
    mean = nodes * daily_rate * days
    if mean > MANY_LOSSES:
        return ceil(NormalDist(mean, mean**0.5).inv_cdf(risk))
    term = total = exp(-mean)
    losses = 0
    while total < risk:
        losses += 1
        term *= mean / losses
        total += term
    return losses


def expected_uptime_s(machines: int, daily_rate: float) -> float:
    """How long a job runs until it loses a node; endless where none is ever lost.

    Examples:
        >>> expected_uptime_s(1200, 0.0012)
        60000.0
    """
    daily = machines * daily_rate
    return round(SECONDS_A_DAY / daily, 3) if daily else inf


def largest_group(job: Job) -> tuple[int, str]:
    """Nodes of the largest group that is evicted whole, and its axis."""
    largest = (1, "")
    for axis, size in job.axes:
        if axis in EVICTED_TOGETHER and size > 1:
            spans = max(len({job.node_of(rank) for rank in group}) for group in job.groups(axis))
            largest = max(largest, (spans, axis))
    return largest if largest[0] > 1 else (1, "")


def pool_size(
    job: Job, daily_rate: float, risk: float = DEFAULT_RISK, refill_days: float | None = None
) -> PoolSize:
    """How many standbys a job needs: for the losses of a day, or of the days until a refill."""
    machines = len(job.nodes)
    group, axis = largest_group(job)
    losses = (
        losses_at_once(machines, daily_rate, risk)
        if refill_days is None
        else losses_within(machines, daily_rate, refill_days, risk)
    )
    return PoolSize(machines, daily_rate, risk, losses, group, axis, refill_days)
