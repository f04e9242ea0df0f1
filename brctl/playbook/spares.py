"""How many standbys a fleet needs: the losses of a day, and the largest group ever evicted at once.

ByteRobust (arXiv 2509.16293, section 6.2) keeps the 99th percentile of simultaneous single-machine
losses, taken as binomial over the machines with their daily failure rate. The paper does not print
that rate; its Table 5 (2, 2, 3, 4 standbys for 128, 256, 512, 1024 machines) comes out for every
rate between 0.001165 and 0.001249 a day.
"""

from dataclasses import dataclass
from math import inf

from brctl.model.jobs.job import Job

PAPER_DAILY_RATE = 0.0012
DEFAULT_RISK = 0.99
SECONDS_A_DAY = 86400
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
    """

    machines: int
    daily_rate: float
    risk: float
    losses: int
    group: int
    group_axis: str

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
        return f"P{self.risk * 100:g} of losses at once"


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


def pool_size(job: Job, daily_rate: float, risk: float = DEFAULT_RISK) -> PoolSize:
    """How many standbys a job needs."""
    machines = len(job.nodes)
    group, axis = largest_group(job)
    losses = losses_at_once(machines, daily_rate, risk)
    return PoolSize(machines, daily_rate, risk, losses, group, axis)
