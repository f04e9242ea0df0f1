"""Documents of jobs: their ranks, checkpoints, code and replays."""

from typing import Literal, NotRequired, TypedDict

from brctl.view.schema import Envelope


class CodeDocument(TypedDict):
    """The code a job runs, and the change that waits for its next start."""

    version: str
    directory: str
    digest: str | None
    change: str | None
    pending: str | None


class JobBody(TypedDict):
    """Where a job runs and how far it is; `stalled` is null when nobody could tell."""

    name: str
    nodes: list[str]
    folded: str
    ranks: int
    ranks_per_node: int
    parallel: dict[str, int]
    step: int | None
    progress_age_seconds: float | None
    stalled: bool | None
    progress_format: str | None
    step_seconds: float | None
    usual_step_seconds: float | None
    loss: float | None
    silent: list[str]
    code: CodeDocument | None
    origin: str


class RankDocument(TypedDict):
    """One rank's last known state."""

    rank: int
    node: str
    alive: bool | None
    exit_status: int | None
    step: int | None
    phase: str | None
    progress_age_seconds: float | None


class SchedulerReasonDocument(TypedDict):
    """What the job's scheduler says of ranks, nodes or the whole job that is not well."""

    what: str
    node: str
    ranks: list[int]
    reason: str
    message: str


class NodeTrendDocument(TypedDict):
    """One number of one node over time; `sum` is of counters, and all are null where unknown."""

    node: str
    metric: str
    newest: float | None
    lowest: float | None
    highest: float | None
    sum: float | None


class TrendsDocument(TypedDict):
    """Health over time; `job` has a list by number, oldest first, null where nobody looked."""

    every_seconds: int
    until: str | None
    problem: str | None
    job: dict[str, list[float | None]]
    nodes: list[NodeTrendDocument]


class JobDocument(Envelope):
    """`brctl job show`; `job watch` has no trends."""

    job: JobBody
    ranks: list[RankDocument]
    scheduler_reasons: list[SchedulerReasonDocument]
    trends: TrendsDocument | None


class TopRankDocument(TypedDict):
    """One rank in `brctl top`; `own_seconds` is the part of a step outside of collectives."""

    rank: int
    node: str
    alive: bool | None
    exit_status: int | None
    phase: str | None
    phase_age_seconds: float | None
    step: int | None
    step_seconds: float | None
    own_seconds: float | None
    wait_seconds: float | None
    loss_finite: bool | None
    first_nonfinite_step: int | None


class TopNodeDocument(TypedDict):
    """One node in `brctl top`: the hottest GPU, the power of all, errors counted so far."""

    node: str
    temperature_c: float | None
    power_w: float | None
    ecc_errors: float | None
    link_errors: float | None
    age_seconds: float | None
    silent: str | None


class NotMeasuredDocument(TypedDict):
    """What was asked and not told, and of which nodes."""

    what: str
    why: str
    nodes: list[str]
    folded: str


class JobTopDocument(Envelope):
    """`brctl top`; a line of `-o ndjson` is a rank or a node, as its `row` says."""

    job: str
    at: str
    stalled: bool | None
    step: int | None
    step_seconds: float | None
    usual_step_seconds: float | None
    loss: float | None
    placement_trouble: str | None
    ranks: list[TopRankDocument]
    nodes: list[TopNodeDocument]
    not_measured: list[NotMeasuredDocument]


class JobInitDocument(Envelope):
    """`brctl job init`: what was written, what was concluded, and what a person has to say."""

    job: str
    file: str
    nodes: list[str]
    folded: str
    guessed: list[str]
    unknown: list[str]


class CheckpointDocument(TypedDict):
    """One checkpoint; null is not known."""

    step: int
    path: str
    complete: bool | None
    verified: bool
    problem: str | None
    age_seconds: float | None
    bytes: int | None
    loader: str | None


class LostGroupsDocument(TypedDict):
    """How many groups of a kind take a rank's only copy with them."""

    kind: str
    lost: int
    groups: int


class StepsLeftDocument(TypedDict):
    """What is left in memory without some nodes."""

    nodes: list[str]
    step: int | None
    ranks_without_copy: list[int]


class KeptStepsDocument(TypedDict):
    """The newest step that all ranks keep in memory; `silent` says why a node is not known."""

    step: int | None
    attempt: int | None
    own_ranks: int
    copied_ranks: int
    silent: dict[str, str]
    lost_groups: list[LostGroupsDocument]
    if_lost: StepsLeftDocument | None


class CheckpointsDocument(Envelope):
    """`brctl ckpt latest|verify`; `latest` is the newest whole one on disk."""

    job: str
    read_from: str
    latest: CheckpointDocument | None
    layout: str
    checkpoints: list[CheckpointDocument]
    remarks: list[str]
    memory: KeptStepsDocument | None


class CodeChangeDocument(TypedDict):
    """A change of a job's code, and what became of it."""

    change: str
    state: str
    release: str
    digest: str
    urgent: bool
    why: str
    by: str
    recorded_at: str
    waits_since: str
    state_by: str | None
    state_at: str
    started_by: str | None
    started_from: str | None
    started_at: str | None


class CodeChangesDocument(Envelope):
    """`brctl job updates`, newest first."""

    job: str
    code: CodeDocument | None
    changes: list[CodeChangeDocument]


class PhasesDocument(TypedDict):
    """The groups of both phases."""

    horizontal: list[list[str]]
    vertical: list[list[str]]


class ReplayPlanDocument(Envelope):
    """`brctl replay plan`: `span`, `first_round` of references; the others of the dual phase."""

    method: Literal["dual-phase", "references"]
    job: str
    k: NotRequired[int]
    m: NotRequired[int]
    n: NotRequired[int]
    unique: NotRequired[bool]
    phases: NotRequired[PhasesDocument]
    span: NotRequired[int]
    first_round: NotRequired[list[list[str]]]


class SpreadDocument(TypedDict):
    """How the groups of one axis stand; a group over one domain is whole."""

    axis: str
    groups: int
    widest_domains: int
    split: int
    total_domains: int


class RankOrderDocument(TypedDict):
    """Nodes in rank order, and what that costs against whole groups, as assumed."""

    order: Literal["now", "rank-order", "best"]
    nodes: list[str]
    spreads: list[SpreadDocument]
    moved_in: list[str]
    slowdown_ratio: float
    seconds_until_next_stop: float | None


class WaitingOrderDocument(TypedDict):
    """A rank order that the next run that restarts the job takes along."""

    id: str
    by: str
    at: str
    nodes: list[str]


class RankDataDocument(TypedDict):
    """One rank over the steps all ranks have; `residual` in deviations, null without cost."""

    rank: int
    load_seconds: float
    compute_seconds: float
    wait_seconds: float
    cost_ratio: float | None
    late_ratio: float
    residual: float | None
    source: str | None


class ReplayDocument(TypedDict):
    """What a rank's newest start ran again."""

    rank: int
    first_step: int
    steps: int
    differs_at_step: int | None
    batches_repeated: int | None
    samples: int | None


class JobDataDocument(Envelope):
    """`brctl job data`; `cause` is null where the ranks' ledgers have too few steps in common.

    `replays` compares the batches since the newest restart with those before: `batches_repeated`
    is below 0 where batches were left out, null where how many is not known.
    """

    job: str
    steps: int
    cause: str | None
    culprits: list[int]
    slowest_to_mean: float | None
    idle_ratio: float | None
    follows_cost: float | None
    ranks: list[RankDataDocument]
    replays: list[ReplayDocument]


class PlacementDocument(Envelope):
    """`brctl job place`; `level` is null where no label says where any node stands."""

    job: str
    level: str | None
    domains: list[str]
    unlabelled: list[str]
    not_in_inventory: list[str]
    parallel: dict[str, int]
    orders: list[RankOrderDocument]
    lacking: dict[str, int]
    slowdown_a_domain_ratio: float
    slowdown_source: str
    expected_uptime_seconds: float | None
    rate_source: str
    waiting: WaitingOrderDocument | None


class RasSuspectDocument(TypedDict):
    """A rank that the others wait for, as NCCL sees it; null where its process is not known."""

    node: str | None
    rank: int | None
    reason: str
    communicator: str | None
    detail: str


class RasAnalysisDocument(Envelope):
    """`brctl nccl ras`; `standing_unequal` and `moved` count communicators."""

    asked: str
    nccl_version: str | None
    communicators: int
    ranks: int
    suspects: list[RasSuspectDocument]
    standing_unequal: int
    moved: int
    unlisted_lagging_ranks: int
    failed: list[str]
    notes: list[str]


class EttrPointDocument(TypedDict):
    """The time before a moment, as known now and as it was known then."""

    at: str
    ettr: float
    ettr_as_known_then: float


class IncidentCostDocument(TypedDict):
    """What one interruption cost."""

    verdict: str | None
    cause: str
    at: str
    stands: bool
    lost_seconds: float
    books_seconds: dict[str, float]


class TimedIncidentDocument(TypedDict):
    """One interruption of a job; null where no record divides a phase from the next."""

    verdict: str | None
    cause: str
    nodes: list[str]
    at: str
    detect_seconds: float | None
    locate_seconds: float | None
    wait_human_seconds: float | None
    fail_over_seconds: float | None
    load_seconds: float | None
    redone_seconds: float | None
    lost_seconds: float
    run: str | None
    stands: bool


class IncidentsDocument(Envelope):
    """`brctl report incidents`."""

    job: str
    from_at: str
    to_at: str
    incidents: list[TimedIncidentDocument]
    median_seconds: dict[str, float | None]
    notes: list[str]


class EttrDocument(Envelope):
    """`brctl report ettr`; `books_seconds` sum to `wall_seconds`."""

    job: str
    from_at: str
    to_at: str
    wall_seconds: float
    ettr: float | None
    expected_ettr: float | None
    levers: dict[str, float]
    levers_node_hours_per_day: dict[str, float | None]
    usual_step_seconds: float
    mttf_seconds: float | None
    mttf_expected_seconds: dict[str, float]
    books_seconds: dict[str, float]
    causes_seconds: dict[str, float]
    sliding_hour: list[EttrPointDocument]
    cumulative: list[EttrPointDocument]
    incidents: list[IncidentCostDocument]
    notes: list[str]
