"""What is known of a job's time: its steps, its incidents, and where every second went."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from brctl.model.simulation import Book

US = 1_000_000
HOUR_US = 3600 * US
DAY_US = 24 * HOUR_US


def moment_of(us: int) -> datetime:
    """Microseconds since 1970 as a moment."""
    return datetime.fromtimestamp(us / US, UTC)


@dataclass(frozen=True, slots=True)
class DoneStep:
    """A step that ended; a restart does some of them once more."""

    step: int
    end_us: int
    seconds_us: int

    @property
    def begin_us(self) -> int:
        return self.end_us - self.seconds_us


@dataclass(frozen=True, slots=True)
class JobIncident:
    """Moments of one interruption; None for what nobody recorded.

    Attributes:
        name: The verdict that it led to; "" without one.
        cause: Its class.
        fault_us: When it stopped, where something told the moment.
        asked_us: When a person was asked, and `agreed_us` when one agreed.
        started_us: When the ranks were started again.
        stopped_us: When a run stopped the ranks: a job may go on for a while after the verdict.
        spoilt_step: The first step whose numbers are none: it and all after it must be done again.
        nodes: Those the verdict names.
        run: The run that acted on it; "" for none.
    """

    name: str
    cause: str
    fault_us: int | None = None
    suspected_us: int | None = None
    verdict_us: int | None = None
    asked_us: int | None = None
    agreed_us: int | None = None
    started_us: int | None = None
    stopped_us: int | None = None
    spoilt_step: int | None = None
    nodes: tuple[str, ...] = ()
    run: str = ""


@dataclass(frozen=True, slots=True)
class BookedSpan:
    """A time in one book; `incident` is its number, None for none."""

    book: Book
    from_us: int
    to_us: int
    incident: int | None = None


@dataclass(frozen=True, slots=True)
class JobTime:
    """Where the wall time of a window went.

    Attributes:
        books_us: They sum to the window exactly.
    """

    from_us: int
    to_us: int
    books_us: Mapping[Book, int]

    @property
    def wall_us(self) -> int:
        return self.to_us - self.from_us

    @property
    def ettr(self) -> float | None:
        """Productive time as a share of wall time; None for an empty window."""
        return self.books_us[Book.PRODUCTIVE] / self.wall_us if self.wall_us else None


@dataclass(frozen=True, slots=True)
class IncidentCost:
    """What one interruption cost, by phase.

    Attributes:
        stands: No step that survives was done since.
    """

    incident: JobIncident
    began_us: int
    books_us: Mapping[Book, int]
    stands: bool = False

    @property
    def lost_us(self) -> int:
        return sum(self.books_us.values())


@dataclass(frozen=True, slots=True)
class EttrReport:
    """The accounts of a job.

    Attributes:
        now: All of the time, as known now.
        hours: The same over the hour before each moment, and as it was known then; (moment, now,
            then).
        cumulative: The same over all of the time before each moment.
        days: Each day of it in UTC, as known now; the first and the last may be parts.
        expected: The share that Meta's closed form gives with the measured rate and times; None
            where nothing failed.
        levers: What halving one of its inputs would give, by name.
        mttf_us: The wall time for each interruption; None where nothing failed.
        expected_mttf_us: What published rates give for so many nodes, by fleet.
        notes: What is missing.
        unread: The step file could not be read: steps of late may be missing from all shares.
    """

    job: str
    now: JobTime
    usual_step_us: int
    hours: tuple[tuple[int, float, float], ...] = ()
    cumulative: tuple[tuple[int, float, float], ...] = ()
    days: tuple[JobTime, ...] = ()
    incidents: tuple[IncidentCost, ...] = ()
    expected: float | None = None
    levers: Mapping[str, float] = field(default_factory=dict)
    mttf_us: int | None = None
    expected_mttf_us: Mapping[str, int] = field(default_factory=dict)
    nodes: int = 0
    notes: tuple[str, ...] = ()
    unread: bool = False
