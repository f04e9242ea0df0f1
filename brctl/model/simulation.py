"""What a simulation of a fleet gives: books of time, scores, figures beside published ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from math import fsum


class Book(StrEnum):
    """Where the wall time of a job goes; every moment is in one of them.

    A simulation and the report over a real job (`brctl report ettr`) mean the same by them.
    """

    PRODUCTIVE = "productive"
    """Steps whose result survives."""
    CHECKPOINT = "checkpoint"
    """Between two steps: what a save or an evaluation blocks."""
    DEGRADED = "degraded"
    """What a step takes beyond the job's own normal."""
    DETECT = "detect"
    """From where it stands to a suspicion."""
    LOCATE = "locate"
    """From a suspicion to a verdict."""
    WAIT_HUMAN = "wait-human"
    """From a proposal to the approval."""
    IDLE_NO_STANDBY = "idle-no-standby"
    START = "start"
    """The fail-over: from a verdict to ranks that are started."""
    LOAD = "load"
    """From ranks that are started to their first step."""
    REDO = "redo"
    """Steps that are done again, and the one that a fault cut off."""
    FIRST_START = "first-start"
    """From the start of the job to its first step."""
    UNKNOWN = "unknown"
    """No record says where it went."""


SIMULATED_BOOKS: tuple[Book, ...] = tuple(
    book for book in Book if book not in (Book.FIRST_START, Book.UNKNOWN)
)
"""A simulation begins with a job that runs, and knows where all its time goes."""


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """One policy on one trace of faults.

    Attributes:
        wall_us: The simulated time in microseconds; the books sum to it exactly.
        stops: Times the job came to stand.
        actions: Playbooks that brctl's own rules ran.
        healthy_evicted: Nodes that were taken out and had nothing.
        culprits_evicted: Nodes that were taken out and were bad.
        came_back: Stops whose first action did not end them.
        shortfalls: Evictions for which too few standbys were ready.
        first_short_us: When the first of these was; 0 for never.
        pages: Times a person was called, approvals not counted.
        refused: Actions that a guard refused.
        worst_hour: The smallest share of an hour that was productive.
        unfinished: Why the run ended before its time; "" for a whole one.
    """

    seed: int
    policy: str
    wall_us: int
    books_us: Mapping[Book, int]
    stops: int = 0
    actions: int = 0
    healthy_evicted: int = 0
    culprits_evicted: int = 0
    came_back: int = 0
    shortfalls: int = 0
    first_short_us: int = 0
    pages: int = 0
    approvals: int = 0
    refused: int = 0
    worst_hour: float = 1.0
    unfinished: str = ""

    @property
    def ettr(self) -> float:
        """Productive time as a share of wall time; slow time is not productive."""
        return self.books_us[Book.PRODUCTIVE] / self.wall_us

    def hours(self, book: Book) -> float:
        """Hours in one book."""
        return self.books_us[book] / 3.6e9


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with the half width of its 95 % confidence interval and the spread of single runs."""

    mean: float
    half_width: float
    deviation: float


@dataclass(frozen=True, slots=True)
class PolicyScore:
    """A policy over all its runs; its pairs differ from the first policy's on the same traces.

    Attributes:
        short_share: Of the stops, those for which too few standbys were ready.
        ran_dry_share: Of the runs, those that had such a stop.
        first_short_day: The mean day of the first one in these; None where there was none.
    """

    policy: str
    title: str
    runs: int
    ettr: Interval
    worst_run: float
    gained: Interval | None
    lost_h: Mapping[Book, float]
    per_run: Mapping[str, float]
    short_share: float
    ran_dry_share: float = 0.0
    first_short_day: float | None = None


@dataclass(frozen=True, slots=True)
class SimulatedFleet:
    """What a simulated fleet is, for the head of a page."""

    name: str
    title: str
    nodes: int
    gpus_per_node: int
    days: float
    per_1000_node_days: float
    counts: str
    origin: str


@dataclass(frozen=True, slots=True)
class PolicyComparison:
    """Policies side by side on the same faults.

    Attributes:
        unfinished: Runs that are missing, and why.
    """

    fleet: SimulatedFleet
    seed: int
    scores: tuple[PolicyScore, ...]
    unfinished: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """The scores at one value of what is swept."""

    value: float
    scores: tuple[PolicyScore, ...]


@dataclass(frozen=True, slots=True)
class ParameterSweep:
    """One parameter over its values, all else equal and on the same faults.

    Attributes:
        unfinished: Values that are missing, and why.
    """

    fleet: SimulatedFleet
    seed: int
    parameter: str
    points: tuple[SweepPoint, ...]
    unfinished: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A figure of a source beside ours.

    Attributes:
        off: How far ours may lie from it; None where nothing is accepted or refused by it.
        share: `off` is a share of the published figure, not a difference.
    """

    table: str
    name: str
    published: float
    ours: float
    source: str
    off: float | None = None
    share: bool = False
    digits: int = 3

    @property
    def difference(self) -> float:
        return self.ours - self.published

    @property
    def holds(self) -> bool:
        """Within what is accepted; true where nothing is asked."""
        if self.off is None:
            return True
        limit = self.off * abs(self.published) if self.share else self.off
        return abs(self.difference) <= limit


@dataclass(frozen=True, slots=True)
class PublishedTables:
    """All figures of a paper that a simulation was asked to reproduce."""

    figures: tuple[PublishedFigure, ...]
    runs: int
    seed: int
    notes: tuple[str, ...] = field(default=())

    @property
    def holds(self) -> bool:
        return all(figure.holds for figure in self.figures)


@dataclass(frozen=True, slots=True)
class PastStop:
    """One incident of a site that was acted on.

    Attributes:
        symptom: The simulated one that is nearest.
        cause: As a trace says it; "" where the verdict leaves it open.
    """

    at: datetime
    symptom: str
    cause: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SiteHistory:
    """What stopped one job in a span of time.

    Attributes:
        began_at: The start of that span, or the first verdict of the site in it.
        left_out: Verdicts that were acted on but name no cause.
    """

    job: str
    nodes: int
    began_at: datetime
    days: float
    stops: tuple[PastStop, ...]
    left_out: int

    @property
    def per_1000_node_days(self) -> tuple[float, float, float]:
        """The rate of these stops, and the limits of its 95 % interval."""
        count = len(self.stops)
        low, high = poisson_limits(count)
        found = [1_000 * number / (self.nodes * self.days) for number in (count, low, high)]
        return found[0], found[1], found[2]


def poisson_limits(count: int) -> tuple[float, float]:
    """The 95 % limits of what a count was expected to be (Byar).

    Examples:
        >>> [round(limit, 1) for limit in poisson_limits(41)]
        [29.4, 55.6]
    """

    def limit(n: int, sign: int) -> float:
        return float(n * (1 - 1 / (9 * n) + sign * 1.96 / (3 * n**0.5)) ** 3)

    return limit(count, -1) if count else 0.0, limit(count + 1, 1)


def interval(values: list[float]) -> Interval:
    """Mean, half width of the 95 % interval of the mean (normal), and deviation of one value."""
    mean = fsum(values) / len(values)
    if len(values) < 2:
        return Interval(mean, 0.0, 0.0)
    deviation = (fsum((v - mean) ** 2 for v in values) / (len(values) - 1)) ** 0.5
    return Interval(mean, 1.96 * deviation / len(values) ** 0.5, deviation)
