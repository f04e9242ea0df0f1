"""Documents of nodes: the fleet, one node, its checks, its burn-ins, the standby pool."""

from typing import Literal, TypedDict

from brctl.view.schema import Envelope, NodeSetDocument, UnreachedDocument


class JobSizeDocument(TypedDict):
    """A job, on how many nodes it runs, and what the newest look at it saw."""

    name: str
    nodes: int
    state: str | None
    step: int | None
    looked_at: str | None


class OpenRunDocument(TypedDict):
    """A run that works, waits for people or stopped half-way."""

    run: str
    state: str
    playbook: str
    verdict: str | None
    job: str | None


class StatusDocument(Envelope):
    """Bare `brctl`: nodes in each state, jobs, open verdicts, open runs."""

    counts: dict[str, int]
    cordoned: int
    standbys: int
    jobs: list[JobSizeDocument]
    open_verdicts: list[str]
    open_runs: list[OpenRunDocument]
    unreached: UnreachedDocument | None
    data_age_seconds: float | None


class FindingOfNodeDocument(TypedDict):
    """What stands against a node."""

    state: str
    check: str
    text: str


class UncheckedDocument(TypedDict):
    """What is not known of a node."""

    check: str
    why: str


class TransitionDocument(TypedDict):
    """A check of a node that began or ceased to fail."""

    at: str
    what: str
    state: str
    check: str
    detail: str


class OneNodeDocument(Envelope):
    """`brctl nodes show`; `history` is null unless asked for."""

    node: str
    state: str
    facts: dict[str, str]
    job: str | None
    cordoned_by: str | None
    reason: str | None
    against: list[FindingOfNodeDocument]
    not_checked: list[UncheckedDocument]
    history: list[TransitionDocument] | None


class NodeSetAnswerDocument(Envelope, NodeSetDocument):
    """`brctl nodes fold`, `expand`, `count`: which nodes a text means."""

    count: int


class DifferenceDocument(TypedDict):
    """One thing that a node has differently."""

    node: str
    name: str
    value: str
    reference: str


class SplitPartDocument(TypedDict):
    """The nodes that have one value."""

    value: str
    nodes: list[str]


class SplitDocument(TypedDict):
    """A reading without a majority."""

    name: str
    parts: list[SplitPartDocument]


class SilentDocument(TypedDict):
    """A node that could not be read, and why."""

    node: str
    why: str


class NodeDifferencesDocument(Envelope):
    """`brctl nodes diff`."""

    reference: NodeSetDocument
    differences: list[DifferenceDocument]
    splits: list[SplitDocument]
    compared: list[str]
    not_compared: list[SilentDocument]


SpreadDocument = TypedDict(
    "SpreadDocument", {"is": str, "count": int, "nodes": list[str], "folded": str}
)


class SilentSinceDocument(TypedDict):
    """A node that did not answer when it was asked last."""

    node: str
    since: str | None
    why: str


class FlapperDocument(TypedDict):
    """How often a check of a node began to fail."""

    node: str
    check: str
    times: int


class FleetDocument(Envelope):
    """`brctl report fleet`; `since` is how far back flappers go."""

    count: int
    states: dict[str, NodeSetDocument]
    cordoned: NodeSetDocument
    standbys: NodeSetDocument
    hardware: list[SpreadDocument]
    versions: dict[str, list[SpreadDocument]]
    silent: list[SilentSinceDocument]
    flappers: list[FlapperDocument]
    since: str
    data_age_seconds: float | None


class FlappersDocument(Envelope):
    """`brctl report flappers`."""

    flappers: list[FlapperDocument]
    sweeps: int
    since: str


class NodePastDocument(TypedDict):
    """What weeks hold against a node; `against` are the signals that few other nodes reach."""

    node: str
    lemon: bool
    signals: dict[str, float]
    against: list[str]
    evidence: dict[str, list[str]]


class LemonsDocument(Envelope):
    """`brctl report lemons`; signals by Meta's names."""

    lemons: list[NodePastDocument]
    nodes: int
    sweeps: int
    verdicts: int
    runs: int
    since: str


class GpuMemoryDocument(TypedDict):
    """Memory errors of one GPU; null is not read, never zero."""

    node: str
    device: str
    index: int | None
    serial: str | None
    corrected: int | None
    uncorrected: int | None
    uncorrected_ever: int | None
    rows_remapped: int | None
    remap_pending: bool | None
    remap_failed: bool | None
    action: str | None
    job: str | None


class DatedGpuMemoryDocument(GpuMemoryDocument):
    """The same, as a sweep of the past read it."""

    at: str


class EccDocument(Envelope):
    """`brctl ecc show|pending`."""

    gpus: list[GpuMemoryDocument]
    not_checked: list[SilentDocument]


class EccHistoryDocument(Envelope):
    """`brctl ecc history`."""

    node: str
    readings: list[DatedGpuMemoryDocument]


class BurninEvidenceDocument(TypedDict):
    """What a burn-in holds against a node."""

    kind: str
    device: str | None
    text: str
    raw: str


class BurninGapDocument(TypedDict):
    """What a burn-in could not look at."""

    what: str
    why: str


class RatingDocument(TypedDict):
    """A rate a device reached; `percentile` is the share of equal devices not faster."""

    name: str
    device: str
    value: float
    unit: str
    percentile: float | None


class NodeBurninDocument(TypedDict):
    """One node of a burn-in."""

    node: str
    state: str
    rounds: int
    reason: str
    evidence: list[BurninEvidenceDocument]
    not_checked: list[BurninGapDocument]
    ratings: list[RatingDocument]


class BurninDocument(Envelope):
    """`brctl burnin run|status`."""

    id: str
    state: str
    level: int
    checks: list[str]
    started_at: str
    duration_s: float
    seconds: float
    nodes: list[NodeBurninDocument]


class BurninResultDocument(NodeBurninDocument):
    """One burn-in that a node was in."""

    id: str
    level: int
    started_at: str


class BurninResultsDocument(Envelope):
    """`brctl burnin results NODE`."""

    node: str
    results: list[BurninResultDocument]


class StandbyDocument(TypedDict):
    """One standby: what waits there, and when its self-checks last passed."""

    node: str
    state: str
    parked_for: str | None
    parked_ranks: int | None
    wanted_ranks: int | None
    parked_age_seconds: float | None
    warmed_age_seconds: float | None
    warm_seconds: float | None
    health: str | None
    tested_age_seconds: float | None
    note: str | None


class StandbyListDocument(Envelope):
    """`brctl standby list`, and after every change of the pool."""

    standbys: list[StandbyDocument]


class PoolPlaceDocument(TypedDict):
    """Where the pool stands beside a job's groups; `standing` counts standbys by domain."""

    level: str
    axis: str
    standing: dict[str, int]
    unlabelled: list[str]
    groups: int
    groups_without: int
    wanted: list[str]
    largest_block: int


class StandbySizeDocument(Envelope):
    """`brctl standby size`; `place` is null where no label says where nodes stand."""

    job: str
    machines: int
    daily_rate_ratio: float
    rate_source: str
    risk_ratio: float
    losses_at_once: int
    refill_days: float | None
    largest_group_nodes: int
    largest_group_axis: str | None
    needed: int
    ruled_by: str
    kept: int
    free: int
    place: PoolPlaceDocument | None


class MeasurementDocument(TypedDict):
    """One thing a check measures."""

    name: str
    unit: str
    what: str


RuleDocument = TypedDict(
    "RuleDocument",
    {"kind": str, "when": str, "weight": str, "class": str | None, "source": str},
)


class CheckBody(TypedDict):
    """What a check asks, what convicts, and how to look by hand."""

    name: str
    title: str
    why: str
    source: str
    level: int
    safe_beside_job: bool
    needs: list[str]
    tools: list[str]
    deadline_seconds: float
    measurements: list[MeasurementDocument]
    rules: list[RuleDocument]
    cross_check: str
    origin: str


class CheckListDocument(Envelope):
    """`brctl check list`."""

    checks: list[CheckBody]


class CheckDocument(Envelope):
    """`brctl check explain`."""

    check: CheckBody


class PathDocument(TypedDict):
    """What a path between two nodes carries at its best."""

    delay_us: float
    there_gb_per_s: float
    back_gb_per_s: float


class PairDocument(TypedDict):
    """One operation between two nodes."""

    nodes: list[str]
    op: str
    state: str
    reps: int
    failed: int | None
    bus_gb_per_s: float | None
    why: str | None
    path: PathDocument | None


class PairSuspectsDocument(TypedDict):
    """The nodes that bad pairs have in common."""

    nodes: list[str]


class PairTestDocument(Envelope):
    """`brctl check pairs`."""

    pairs: list[PairDocument]
    suspects: PairSuspectsDocument
    left_out: list[str]
    notes: list[str]


class InventoryNodeDocument(TypedDict):
    """A node as the inventory names it."""

    name: str
    address: str
    port: int
    user: str | None
    role: str
    python: str
    torch_python: str | None
    via: str | None
    gpus: int | None
    labels: dict[str, str]
    origin: str


class InventoryDocument(Envelope):
    """`brctl inventory show`."""

    sources: str
    nodes: list[InventoryNodeDocument]
    groups: dict[str, NodeSetDocument]


class InventoryCheckDocument(Envelope):
    """`brctl inventory validate`."""

    nodes: int
    conflicts: list[str]


class InventorySourceDocument(TypedDict):
    """One source of the inventory."""

    source: str
    nodes: int
    groups: int


class InventorySourcesDocument(Envelope):
    """`brctl inventory sources`; later ones win."""

    sources: list[InventorySourceDocument]


class HostKeyDocument(TypedDict):
    """The host key that a node shows."""

    node: str
    state: Literal["known", "new", "silent", "changed", "revoked"]
    kind: str
    fingerprint: str
    detail: str


class HostKeysDocument(Envelope):
    """`brctl inventory trust`."""

    known_hosts: str
    written: bool
    keys: list[HostKeyDocument]
