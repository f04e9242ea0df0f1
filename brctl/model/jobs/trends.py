"""Job health over time: which numbers are kept, how fine and how long, and one series of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class Fold(StrEnum):
    """What becomes of several looks in one bucket."""

    MEAN = "mean"
    HIGHEST = "highest"
    NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class TrendMetric:
    """One number that is kept.

    Attributes:
        of_node: It is a node's, else a job's.
        counts: It is a counter: what is shown is how much it grew.
        low_first: The lowest of the nodes is the one to look at, else the highest.
    """

    title: str
    unit: str
    fold: Fold
    of_node: bool = False
    counts: bool = False
    low_first: bool = False


TREND_METRICS: Mapping[str, TrendMetric] = {
    "step_s": TrendMetric("step time", "s", Fold.MEAN),
    "steps_per_s": TrendMetric("steps/s", "", Fold.MEAN),
    "tokens_per_s": TrendMetric("tokens/s", "", Fold.MEAN),
    "loss": TrendMetric("loss", "", Fold.MEAN),
    "grad_norm": TrendMetric("grad norm", "", Fold.MEAN),
    "temperature_c": TrendMetric("temperature", "C", Fold.HIGHEST, of_node=True),
    "power_w": TrendMetric("power", "W", Fold.MEAN, of_node=True, low_first=True),
    "ecc_errors": TrendMetric("ECC errors", "", Fold.NEWEST, of_node=True, counts=True),
    "link_errors": TrendMetric("link errors", "", Fold.NEWEST, of_node=True, counts=True),
}


@dataclass(frozen=True, slots=True)
class TrendTier:
    """One resolution, and how long it is kept."""

    every_s: int
    kept_s: int


TIERS = (TrendTier(60, 2 * 3600), TrendTier(600, 86_400), TrendTier(7200, 30 * 86_400))
"""The finest first: 624 buckets a series at most, decision 0406."""


@dataclass(frozen=True, slots=True)
class TrendSample:
    """One number of one look; `subject` is a node or a job."""

    subject: str
    metric: str
    value: float


@dataclass(frozen=True, slots=True)
class TrendSeries:
    """One number over time, oldest first; None where nobody looked, or the look told nothing."""

    subject: str
    metric: str
    values: tuple[float | None, ...]

    @property
    def shown(self) -> tuple[float | None, ...]:
        """What is drawn: of a counter its growth since the bucket that was known before."""
        return _growth(self.values) if TREND_METRICS[self.metric].counts else self.values


def _growth(values: tuple[float | None, ...]) -> tuple[float | None, ...]:
    """A counter that fell was set back (a driver loaded anew): how much it grew, nobody knows."""
    found: list[float | None] = []
    known: float | None = None
    for value in values:
        grown = None if value is None or known is None else value - known
        found.append(None if grown is None or grown < 0 else grown)
        known = known if value is None else value
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Trends:
    """Series of one resolution.

    Attributes:
        until: End of the newest bucket.
        problem: Why nothing could be read; "" where it could.
    """

    every_s: int
    until: datetime | None = None
    series: tuple[TrendSeries, ...] = ()
    problem: str = ""

    @property
    def buckets(self) -> int:
        return max((len(one.values) for one in self.series), default=0)

    @property
    def since(self) -> datetime | None:
        """Start of the oldest bucket."""
        return self.until and self.until - timedelta(seconds=self.every_s * self.buckets)


NO_TRENDS = Trends(TIERS[0].every_s)
