"""Documents of simulations."""

from typing import TypedDict

from brctl.view.schema import Envelope


class IntervalDocument(TypedDict):
    """A mean, the half width of its 95 % interval, and the deviation of single runs."""

    mean: float
    half_width_95: float
    deviation: float


class SimulatedFleetDocument(TypedDict):
    """What was simulated; a rate says what it counts."""

    name: str
    title: str
    origin: str
    nodes: int
    gpus_per_node: int
    days: float
    failures_per_1000_node_days: float
    failures_counted: str


class PolicyScoreDocument(TypedDict):
    """One policy over all its runs; `gained_ratio` is null for the first."""

    policy: str
    title: str
    runs: int
    ettr_ratio: IntervalDocument
    worst_run_ettr_ratio: float
    gained_ratio: IntervalDocument | None
    lost_hours: dict[str, float]
    per_run: dict[str, float]
    short_ratio: float
    ran_dry_ratio: float
    first_short_day: float | None


class SimulationDocument(Envelope):
    """`brctl simulate fleet FLEET`, `brctl simulate merge`."""

    fleet: SimulatedFleetDocument
    seed: int
    policies: list[PolicyScoreDocument]
    unfinished: list[str]


class SweepPointDocument(TypedDict):
    """The scores at one value."""

    value: float
    policies: list[PolicyScoreDocument]


class SimulationSweepDocument(Envelope):
    """`brctl simulate fleet FLEET --sweep NAME=A..B`."""

    fleet: SimulatedFleetDocument
    seed: int
    parameter: str
    points: list[SweepPointDocument]
    unfinished: list[str]


class ShardFleetDocument(TypedDict):
    """The fleet a part is of, as `merge` reads it."""

    name: str
    title: str
    nodes: int
    gpus_per_node: int
    days: float
    per_1000_node_days: float
    counts: str
    origin: str


class SimulatedRunDocument(TypedDict):
    """One policy on one trace; the books sum to `wall_us`."""

    seed: int
    policy: str
    wall_us: int
    books_us: dict[str, int]
    stops: int
    actions: int
    healthy_evicted: int
    culprits_evicted: int
    came_back: int
    shortfalls: int
    first_short_us: int
    pages: int
    approvals: int
    refused: int
    worst_hour: float
    unfinished: str


class SimulationShardDocument(Envelope):
    """`brctl simulate fleet FLEET --shard I/N`."""

    fleet: ShardFleetDocument
    conditions_sha256: str
    seed: int
    runs_wanted: int
    policies: dict[str, str]
    runs: list[SimulatedRunDocument]


class SlurmArrayDocument(Envelope):
    """`brctl simulate fleet FLEET --slurm-array N`."""

    text: str


class PastStopDocument(TypedDict):
    """One incident that was acted on; `cause` is null where its verdict leaves it open."""

    at: str
    symptom: str
    cause: str | None
    nodes: list[str]


class SiteHistoryDocument(Envelope):
    """`brctl simulate history`, `brctl simulate fit`; `text` is the file."""

    job: str
    nodes: int
    began_at: str
    days: float
    failures_per_1000_node_days: float
    rate_low_95: float
    rate_high_95: float
    stops: list[PastStopDocument]
    left_out: int
    text: str


class PublishedFigureDocument(TypedDict):
    """A published figure beside ours; `accepted` is null where nothing is asked."""

    table: str
    name: str
    published: float
    ours: float
    difference: float
    accepted: float | None
    accepted_is_ratio: bool
    holds: bool
    source: str


class PublishedTablesDocument(Envelope):
    """`brctl simulate paper`."""

    holds: bool
    runs: int
    seed: int
    figures: list[PublishedFigureDocument]
    notes: list[str]
