"""The envelope, and what diagnosis writes, as types; mypy holds writers to them.

Within apiVersion v1 keys are only added. Node sets are always both expanded and folded, times are
RFC 3339 UTC, names carry units, and what was not measured is null. Types with a key `class` are
written in the functional form, because `class` is a word of Python. The other kinds of documents,
and the table of all, are in brctl/view/schemas.
"""

from typing import Literal, NotRequired, TypedDict


class NodeSetDocument(TypedDict):
    """A node set for programs and for people."""

    nodes: list[str]
    folded: str


EvidenceDocument = TypedDict(
    "EvidenceDocument",
    {
        "n": int,
        "sign": Literal["for", "against", "follows", "context"],
        "weight": str,
        "role": str,
        "class": str | None,
        "node": str | None,
        "device": str | None,
        "at": str | None,
        "kind": str,
        "source": str,
        "text": str,
        "raw": str,
    },
)


class GapDocument(TypedDict):
    """One thing that could not be looked at."""

    node: str | None
    device: str | None
    what: str
    why: str


class DeviceDocument(TypedDict):
    """One part of a suspect node, `kind:id`."""

    node: str
    device: str


class SuspectsDocument(TypedDict):
    """The nodes a verdict names, their parts and the ranks they carry."""

    nodes: list[str]
    folded: str
    devices: list[DeviceDocument]
    ranks: list[int]


class JobRefDocument(TypedDict):
    """The job a verdict is about."""

    name: str
    step: int | None


class ActionDocument(TypedDict):
    """What comes next: a word of the closed list, what does it, why, and what to type."""

    do: str
    playbook: str | None
    say: str | None
    command: str | None


AlternativeDocument = TypedDict(
    "AlternativeDocument",
    {"class": str, "nodes": list[str], "folded": str, "probability": float},
)

RuledOutDocument = TypedDict("RuledOutDocument", {"class": str, "by": list[int], "why": str})


class PlaceDocument(TypedDict):
    """Ranks of one node where a fault came to light that no machine has."""

    node: str
    ranks: list[int]


VerdictBody = TypedDict(
    "VerdictBody",
    {
        "id": str,
        "class": str,
        "title": str,
        "origin": Literal["infra", "user", "unknown"],
        "confidence": Literal["high", "medium", "low"],
        "probability": float,
        "suspects": SuspectsDocument,
        "places": list[PlaceDocument],
        "job": JobRefDocument | None,
        "action": ActionDocument,
        "cost_if_wrong": str | None,
        "evidence": list[EvidenceDocument],
        "alternatives": list[AlternativeDocument],
        "settle": list[str],
        "ruled_out": list[RuledOutDocument],
        "not_checked": list[GapDocument],
        "decided_at": str,
    },
)


class NodeDocument(TypedDict):
    """One node of a sweep."""

    node: str
    state: Literal["ok", "warn", "crit", "unknown"]
    outcome: str
    detail: str | None
    seconds: float
    evidence: list[EvidenceDocument]
    not_checked: list[GapDocument]


class SweepHead(TypedDict):
    """What a sweep asked and how long it took."""

    id: str
    level: int
    checks: list[str]
    started_at: str
    seconds: float


class SweepSummary(TypedDict):
    """The nodes in each state."""

    ok: NodeSetDocument
    warn: NodeSetDocument
    crit: NodeSetDocument
    unknown: NodeSetDocument


ErrorDetail = TypedDict(
    "ErrorDetail", {"class": str, "message": str, "cause": str | None, "try": str | None}
)


class Envelope(TypedDict):
    """The keys every document has besides its own."""

    apiVersion: Literal["brctl.dev/v1"]
    kind: str
    brctl: str
    context: str
    generatedAt: str
    exit_code: int
    errors: list[ErrorDetail]
    next: list[str]


class ProblemDocument(TypedDict):
    """One check's bad news about one node."""

    node: str
    check: str
    state: str
    detail: str


class MassDocument(TypedDict):
    """One check that began to fail on many nodes at once, and what those share."""

    check: str
    state: str
    nodes: list[str]
    folded: str
    shared: str | None
    detail: str


class ChangesDocument(TypedDict):
    """What is different from the sweeps before."""

    new: list[ProblemDocument]
    worse: list[ProblemDocument]
    recovered: list[ProblemDocument]
    still: list[ProblemDocument]
    flapping: list[ProblemDocument]
    mass: list[MassDocument]


class JobLookDocument(TypedDict):
    """What a look at a job saw; `verdict` is what its stall was found to be."""

    job: str
    state: str
    step: int | None
    progress_age_seconds: float | None
    step_seconds: float | None
    usual_step_seconds: float | None
    because: str | None
    verdict: str | None


class UnreachedDocument(TypedDict):
    """Most nodes were not reached: why, what they share, and the commands that tell more."""

    nodes: list[str]
    folded: str
    asked: int
    reasons: dict[str, int]
    shared: str | None
    settle: list[str]


class SweepDocument(Envelope):
    """`brctl sweep`, with `changes`, and `jobs` of `--cron`; `brctl check run`."""

    sweep: SweepHead
    summary: SweepSummary
    nodes: list[NodeDocument]
    unreached: NotRequired[UnreachedDocument | None]
    changes: NotRequired[ChangesDocument]
    jobs: NotRequired[list[JobLookDocument]]


class SlowedJobDocument(NodeSetDocument):
    """Nodes of a job that a look would load."""

    job: str


class DeeperDocument(TypedDict):
    """The next level that asks more, how long at most on a node, and which jobs it slows."""

    level: int
    checks: list[str]
    at_most_seconds: float
    slows: list[SlowedJobDocument]


class DiagnosisDocument(Envelope):
    """`brctl dx`; `verdict` is the first of `verdicts`, `deeper` null where nothing is open."""

    deeper: DeeperDocument | None

    verdict: VerdictBody
    verdicts: list[VerdictBody]
    seconds: float


class VerdictDocument(Envelope):
    """`brctl why`, `brctl verdict show`."""

    verdict: VerdictBody
    state: str
    note: str | None


class ErrorDocument(Envelope):
    """Any command that could not do it, with `-o json`."""

    error: ErrorDetail


class NodeRow(TypedDict):
    """One line of `brctl ls`."""

    node: str
    role: str
    state: str
    check: str | None
    detail: str | None
    cordoned_by: str | None
    reason: str | None
    job: str | None


class NodesDocument(Envelope):
    """`brctl ls`; states are those of the last sweep, `data_age_seconds` old."""

    nodes: list[NodeRow]
    data_age_seconds: float | None


class LogLineDocument(TypedDict):
    """A line that decided, or that follows from one that did."""

    role: Literal["root", "victim", "teardown", "context"]
    file: str
    line: int
    text: str
    signature: str
    count: int


LogAlternative = TypedDict("LogAlternative", {"class": str, "probability": float})

LogLeadDocument = TypedDict(
    "LogLeadDocument",
    {
        "class": str,
        "probability": float,
        "source": Literal["words", "ending", "line"],
        "lines": list[str],
        "why": str,
        "commands": list[str],
    },
)

LogVerdictDocument = TypedDict(
    "LogVerdictDocument",
    {
        "input": str | None,
        "class": str,
        "origin": Literal["infra", "user", "unknown"],
        "culprit": str | None,
        "probability": float,
        "action": str,
        "playbook": str | None,
        "say": str | None,
        "evidence": list[LogLineDocument],
        "alternatives": list[LogAlternative],
        "leads": list[LogLeadDocument],
        "notes": list[str],
    },
)


class LogClassificationDocument(Envelope):
    """`brctl logs classify`: one item an input, and all inputs together."""

    items: list[LogVerdictDocument]
    overall: LogVerdictDocument


class SuspectRankDocument(TypedDict):
    """A rank the others wait for, and why it is held to be that."""

    rank: int
    node: str | None
    reason: str
    group: str | None
    sequence: int | None
    waiting_ranks: list[int]
    detail: str


class CollectiveGroupDocument(TypedDict):
    """How far each rank of one process group came: sequence numbers by rank."""

    group: str
    description: str
    ranks: list[int]
    last_enqueued: dict[str, int]
    last_completed: dict[str, int]


class FlightRecorderDocument(Envelope):
    """`brctl flight-recorder analyse`; `groups` shows how far each rank of each group came."""

    ranks: list[int]
    suspect_ranks: list[SuspectRankDocument]
    waiting_ranks: list[int]
    common_cause: bool
    groups: list[CollectiveGroupDocument]
    notes: list[str]


class StackGroupDocument(TypedDict):
    """Ranks with one and the same stack, innermost frame first; without one they are silent."""

    ranks: list[int]
    folded_ranks: str
    stack: list[str]
    dominant: bool
    answered: bool


class ParallelGroupDocument(TypedDict):
    """The smallest group of one parallel axis that holds all outliers, and its nodes."""

    axis: str
    ranks: list[int]
    nodes: list[str]
    folded: str
    node_count: int


class StackAnalysisDocument(Envelope):
    """`brctl stacks show`, `brctl stacks analyse`."""

    rounds: int
    groups: list[StackGroupDocument]
    outlier_ranks: list[int]
    silent_ranks: list[int]
    group: ParallelGroupDocument | None
    candidate_groups: list[ParallelGroupDocument]
    suspect_ranks: list[int]
    suspect_nodes: NodeSetDocument
    reason: str
    notes: list[str]


class GroupResultDocument(TypedDict):
    """What one group's test gave; null is what was not measured."""

    reps: int
    failed: int | None
    answered: bool | None
    busbw_gb_per_s: float | None


class GroupTestDocument(TypedDict):
    """A test behind a finding: its round, its group and what it gave."""

    round: int
    group: list[str]
    reps: int
    failed: int | None
    answered: bool | None
    busbw_gb_per_s: float | None


class SuspectNodeDocument(TypedDict):
    """One of the likeliest nodes after a round."""

    node: str
    posterior: float


class RoundDocument(TypedDict):
    """One round: groups that ran at the same time and, in the same order, their results."""

    round: int
    stage: str
    seconds: float
    groups: list[list[str]]
    results: list[GroupResultDocument]
    suspects: list[SuspectNodeDocument]
    notes: list[str]


class ExclusionDocument(TypedDict):
    """What the clean tests rule out, and who was never seen to pass."""

    failure_probability_at_least: float
    confidence: float
    clean_repetitions: int
    never_passed: list[str]


class FindingDocument(TypedDict):
    """What collective tests found: kind, its node or leaf names, and the tests behind it."""

    kind: str
    members: list[str]
    posterior: float
    smallest_size: int | None
    why: str | None
    tests: list[GroupTestDocument]


class BisectionDocument(Envelope):
    """`brctl nccl bisect`, `brctl replay run`."""

    id: str
    started_at: str
    op: str
    size_bytes: int
    reps: int
    runner: str
    seed: int
    budget_seconds: float
    tested: NodeSetDocument
    verdicts: list[FindingDocument]
    excluded: ExclusionDocument
    rounds: int
    node_tests: int
    seconds: float
    complete: bool
    ended: str
    notes: list[str]
    round_log: list[RoundDocument]
    stored_verdicts: NotRequired[list[str]]
