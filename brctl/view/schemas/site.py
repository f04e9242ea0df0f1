"""Documents about brctl itself: its setup, its help, its rules, the lab."""

from typing import Any, NotRequired, TypedDict

from brctl.view.schema import Envelope, LogVerdictDocument, VerdictBody


class FirstMoveDocument(TypedDict):
    """What the decision tree says first."""

    do: str
    playbook: str | None
    say: str


HelpClassDocument = TypedDict(
    "HelpClassDocument",
    {
        "class": str,
        "title": str,
        "words": str,
        "origin": str,
        "branch": str,
        "per_node": bool,
        "explains": list[str],
        "explains_elsewhere": list[str],
        "cost_if_wrong": str | None,
        "first_move": FirstMoveDocument,
    },
)


class HelpDocument(Envelope):
    """`brctl help TOPIC`; `classes` with `brctl help classes` only."""

    topic: str | None
    text: str
    classes: NotRequired[list[HelpClassDocument]]


class CompletionsDocument(Envelope):
    """`brctl completions SHELL`."""

    shell: str
    script: str


class ScheduleDocument(Envelope):
    """`brctl schedule systemd|cron`."""

    form: str
    text: str


class SchemaDocument(Envelope):
    """`brctl schema show`, `brctl play schema`."""

    schema: dict[str, Any]


class KindDocument(TypedDict):
    """A kind of document and what writes it."""

    kind: str
    what: str


class SchemaListDocument(Envelope):
    """`brctl schema list`."""

    kinds: list[KindDocument]


class ConfigDocument(Envelope):
    """`brctl config view`, as words."""

    settings: dict[str, str]


class ConfigInitDocument(Envelope):
    """`brctl config init`: what was written, and whom it names."""

    context: str
    files: list[str]
    nodes: list[str]
    folded: str


class ConfigPathDocument(Envelope):
    """`brctl config path`, in the order they are tried."""

    files: list[str]
    used: str | None


DoctorFindingDocument = TypedDict(
    "DoctorFindingDocument", {"state": str, "topic": str, "text": str, "try": str | None}
)


class DoctorDocument(Envelope):
    """`brctl doctor`."""

    findings: list[DoctorFindingDocument]


class SecurityFindingDocument(TypedDict):
    """What is open, of what and to whom, why it matters, and what to type."""

    state: str
    topic: str
    subject: str
    text: str
    why: str | None
    type: str | None


class SecurityReportDocument(Envelope):
    """`brctl doctor --security`, the worst first."""

    findings: list[SecurityFindingDocument]


class RootCommandDocument(TypedDict):
    """A command that runs as root on nodes, and the checks that need it."""

    command: list[str]
    checks: list[str]


class SudoersDocument(Envelope):
    """`brctl config sudoers`; `text` is the file."""

    user: str
    text: str
    commands: list[RootCommandDocument]


class RouteDocument(TypedDict):
    """How a node is reached, and whether its host key is known."""

    node: str
    transport: str
    why: str
    host_key: str


class DoctorSshDocument(Envelope):
    """`brctl doctor ssh`."""

    known_hosts: list[str]
    routes: list[RouteDocument]


class TuiViewDocument(Envelope):
    """One screen of the TUI as text."""

    text: str


LogRuleDocument = TypedDict(
    "LogRuleDocument",
    {"name": str, "part": str, "class": str | None, "probability": float, "source": str},
)


class LogRuleListDocument(Envelope):
    """`brctl logs rules list`."""

    rules: list[LogRuleDocument]


class RuleTrialDocument(TypedDict):
    """The rules that a line met, and the one it should have met."""

    line: str
    rules: list[str]
    wanted: str | None
    passed: bool


class LogRuleTrialDocument(Envelope):
    """`brctl logs rules test`."""

    lines: list[RuleTrialDocument]


LearnedRuleDocument = TypedDict(
    "LearnedRuleDocument",
    {"rule": str, "class": str, "contains": list[str], "line": int, "text": str},
)


class LogLessonDocument(Envelope):
    """`brctl logs teach`: the rule that was learned, and what the log was before and is now."""

    lesson: LearnedRuleDocument
    path: str
    before: str
    after: str
    probability: float


NearRuleDocument = TypedDict(
    "NearRuleDocument",
    {"rule": str, "class": str | None, "alike": float, "shared": list[str]},
)


class ExplainedLineDocument(TypedDict):
    """A line that stands out, and the rules it is like."""

    line: int
    text: str
    count: int
    surprise_bits: float
    near: list[NearRuleDocument]


class LogExplanationDocument(Envelope):
    """`brctl logs explain`."""

    verdict: LogVerdictDocument
    lines: list[ExplainedLineDocument]


class NewCheckDocument(Envelope):
    """`brctl check new`: the files that were written."""

    check: str
    files: list[str]


class ImportedChecksDocument(Envelope):
    """`brctl check import-nhc`: the folders that were written."""

    source: str
    folders: list[str]


class BaselineDocument(Envelope):
    """`brctl check learn`."""

    file: str
    nodes: int
    readings: int


class LabFaultBody(TypedDict):
    """What was broken; `subject` is "" for the node itself."""

    fault: str
    node: str
    subject: str
    say: str


class LabFaultDocument(Envelope):
    """`brctl lab break`."""

    fault: LabFaultBody


LabFaultRow = TypedDict("LabFaultRow", {"fault": str, "needs": str, "class": str, "what": str})


class LabFaultsDocument(Envelope):
    """`brctl lab faults`."""

    faults: list[LabFaultRow]


class LabHealedDocument(Envelope):
    """`brctl lab heal`."""

    nodes: list[str]


class LabDownDocument(Envelope):
    """`brctl lab down`."""

    directory: str


class LabNodeDocument(TypedDict):
    """One node of the lab."""

    node: str
    role: str
    address: str
    power: str
    ssh: str
    processes: int
    faults: list[str]


class LabStatusDocument(Envelope):
    """`brctl lab up|status`."""

    directory: str
    isolation: str
    nodes: list[LabNodeDocument]


class DemoTruthDocument(TypedDict):
    """What was really broken."""

    node: str
    subject: str | None


class DemoPlanDocument(TypedDict):
    """What was done about it."""

    playbook: str | None
    steps: list[str]
    run: str | None
    result: str | None


class DemoCheckpointDocument(TypedDict):
    """Where training began again."""

    path: str
    step: int | None


class DemoLossesDocument(TypedDict):
    """The loss of the step that was trained twice."""

    step: int | None
    before: float
    after: float
    equal: bool


class DemoMomentDocument(TypedDict):
    """Something that came so many seconds after the fault."""

    what: str
    seconds: float


class LabDemoDocument(Envelope):
    """`brctl lab demo`; null where it did not come to that."""

    fault: str
    expected_class: str
    truth: DemoTruthDocument
    verdict: VerdictBody | None
    plan: DemoPlanDocument
    checkpoint: DemoCheckpointDocument | None
    old_step: int | None
    first_new_step: int | None
    losses: DemoLossesDocument | None
    seconds: dict[str, float]
    moments: list[DemoMomentDocument]
    named_right: bool
    trained_on: bool
