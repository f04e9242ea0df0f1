"""Documents of playbooks, their runs and what people do with them."""

from typing import Any, Literal, NotRequired, TypedDict

from brctl.view.schema import Envelope, NodeSetDocument


class AnswerDocument(TypedDict):
    """What one node answered to a command; output that is no UTF-8 is replaced."""

    node: str
    outcome: str
    exit_status: int | None
    stdout: str
    stderr: str
    seconds: float
    detail: str


class StepDocument(TypedDict):
    """One step of a run and what became of it."""

    id: str
    name: str
    uses: str
    safety: str
    state: str
    attempts: int
    changed: bool
    says: str | None
    error: str | None
    out: dict[str, Any]
    seconds: float


class NodeRunDocument(TypedDict):
    """What became of one node of `for_each`."""

    node: str
    result: str | None
    why: str | None
    failed_step: str | None
    seconds: float


class RunBody(TypedDict):
    """A run of a playbook, as its journal tells it; `undo` is what to type to take it back."""

    id: str
    playbook: str
    playbook_sha256: str
    state: str
    why: str | None
    seconds: float
    started_at: str | None
    steps: list[StepDocument]
    nodes: list[NodeRunDocument]
    damage: list[str]
    undo: list[str]


class RunDocument(Envelope):
    """`brctl fix`, `brctl play run|show R-...`: one run of a playbook."""

    run: RunBody


class AnswersDocument(Envelope):
    """`brctl run`: what every node answered, and those that had not when it was interrupted."""

    answers: list[AnswerDocument]
    interrupted: NodeSetDocument


class RunRow(TypedDict):
    """One line of `brctl play history`."""

    run: str
    started_at: str | None
    playbook: str
    state: str
    seconds: float
    nodes: str
    verdict: str | None
    by: str
    exit_code: int | None
    problem: str | None


class RunListDocument(Envelope):
    """`brctl play history`, newest first."""

    runs: list[RunRow]


class ChangeDocument(TypedDict):
    """One object that a step would change."""

    sign: Literal["+", "~", "-"]
    object: str
    what: str


PlannedStepDocument = TypedDict(
    "PlannedStepDocument",
    {
        "id": str,
        "node": NotRequired[str],
        "name": str,
        "uses": str,
        "safety": str,
        "with": dict[str, Any],
        "changes": list[ChangeDocument],
        "skipped": str | None,
        "undo": bool,
    },
)


class GuardDocument(TypedDict):
    """What one guard said, and where its limit stands."""

    guard: str
    ok: bool
    says: str
    origin: str
    way_out: str | None
    overridden_by: str | None


class PlannedApprovalDocument(TypedDict):
    """Who must agree, and before which step."""

    people: str
    roles: list[str]
    before: str | None


class EstimateDocument(TypedDict):
    """What a plan is expected to cost; null is not known. Seconds are those of earlier runs."""

    seconds: float | None
    earlier_runs: list[float]
    at_most_seconds: float
    checkpoint_step: int | None
    steps_lost: int | None
    standbys_left: int | None


class PlanBody(TypedDict):
    """A plan; `digest` is what an approval is bound to. `waves`, `pause` with `for_each` only."""

    playbook: str
    playbook_sha256: str
    verdict: str | None
    inputs: dict[str, Any]
    nodes: list[str]
    steps: list[PlannedStepDocument]
    guards: list[GuardDocument]
    approval: PlannedApprovalDocument
    waves: NotRequired[list[list[str]]]
    pause: NotRequired[str]
    longest_path_seconds: float
    planned_at: str
    digest: str
    estimate: EstimateDocument | None


class PlanDocument(Envelope):
    """`brctl play plan`, `brctl fix -n`."""

    plan: PlanBody


class PlaybookRow(TypedDict):
    """One line of `brctl play list`."""

    name: str
    risk: str
    title: str
    steps: int
    classes: list[str]
    min_confidence: str
    path: str
    sha256: str


class PlaybookListDocument(Envelope):
    """`brctl play list`."""

    playbooks: list[PlaybookRow]


class PlaybookDocument(Envelope):
    """`brctl play show NAME`; `text` is the file."""

    playbook: PlaybookRow
    text: str


class ValidationDocument(Envelope):
    """`brctl play validate`."""

    sound: list[str]
    mistakes: list[str]


class JournalDocument(TypedDict):
    """A run's journal or a job's code ledger; `state` is sound, keyless, unverified or altered."""

    name: str
    lines: int
    state: str
    problems: list[str]


class JournalCheckDocument(Envelope):
    """`brctl play verify`."""

    journals: list[JournalDocument]
