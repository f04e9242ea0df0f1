"""What can be said of a fleet without events: expected share of productive time, pools, starts.

Meta's closed form (brctl/evidence/job/expected_ettr.py) holds while stops are rare against a
checkpoint's interval; the renewal formula (Daly's form) needs no such thing, but that nothing stops
during a recovery.
"""

from collections.abc import Mapping, Sequence
from math import comb, exp, sqrt

DAY_S = 86_400.0


def stops_per_s(nodes: int, per_node_day: float) -> float:
    """Stops of a job per second, from failures per node and day."""
    return nodes * per_node_day / DAY_S


def exact(stops: float, start_s: float, interval_s: float, write_s: float = 0.0) -> float:
    """The share by the renewal formula: every stop costs the start and the work since a save.

    Examples:
        >>> round(exact(stops_per_s(2000, 6.5e-3), 300, 3600), 3)
        0.721
    """
    cycle_s = (1 / stops + start_s) * (exp(stops * (interval_s + write_s)) - 1)
    return interval_s / cycle_s


def best_interval_s(stops: float, write_s: float) -> float:
    """Young's optimum of the time between checkpoints."""
    return sqrt(2 * write_s / stops)


def every_step(stops_per_uptime_s: float, loss_s: float) -> float:
    """The share where every step is saved: each stop costs its mean loss and nothing else."""
    return 1 / (1 + stops_per_uptime_s * loss_s)


def lost_at_once(nodes: int, daily_rate: float, most: int) -> list[float]:
    """Chances of 1..most losses in a day, binomial, given that there is one of these."""
    chances = [
        comb(nodes, k) * daily_rate**k * (1 - daily_rate) ** (nodes - k) for k in range(1, most + 1)
    ]
    return [chance / sum(chances) for chance in chances]


def weighted_start(
    nodes: int, daily_rate: float, pool: int, burst_share: float, starts_s: Mapping[str, float]
) -> float:
    """ByteRobust's weighted average of a start: losses within the pool, and the event beyond it."""
    weights = lost_at_once(nodes, daily_rate, pool)
    within = sum(weight * starts_s["pool"] for weight in weights)
    return (1 - burst_share) * within + burst_share * starts_s["burst"]


def mean_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The mean of ratios, one a row."""
    return sum(a / b for a, b in zip(above, below, strict=True)) / len(above)
