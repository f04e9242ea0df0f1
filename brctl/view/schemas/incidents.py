"""Documents of verdicts kept, incidents, and those who are told of them."""

from typing import Any, Literal, TypedDict

from brctl.view.schema import Envelope, NodeSetDocument, VerdictBody, VerdictDocument


class ListedVerdict(VerdictBody):
    """A verdict and what became of it."""

    state: str


class VerdictListDocument(Envelope):
    """`brctl verdict list`, newest first."""

    verdicts: list[ListedVerdict]


class VerdictExportDocument(VerdictDocument):
    """`brctl verdict export`, without secrets; `html` is null unless it was asked for."""

    markdown: str
    html: str | None


class ReliabilityDocument(TypedDict):
    """Judged verdicts of one confidence; `stated` is their mean probability."""

    confidence: str
    judged: int
    right: int
    stated: float


class CalibrationDocument(Envelope):
    """`brctl report calibration`; `verdicts` counts those nobody judged as well."""

    calibration: list[ReliabilityDocument]
    verdicts: int


class MomentDocument(TypedDict):
    """One line of a time line; `since_seconds` counts from its first."""

    at: str
    since_seconds: float
    what: str
    text: str
    source: str


IncidentBody = TypedDict(
    "IncidentBody",
    {
        "id": str,
        "title": str,
        "class": str,
        "state": str,
        "suspects": NodeSetDocument,
        "job": str | None,
        "runs": list[str],
        "began_at": str,
        "recovered_at": str | None,
        "moments": list[MomentDocument],
    },
)


class IncidentDocument(Envelope):
    """`brctl incident show|note`, `brctl incident export --format json`."""

    incident: IncidentBody


class IncidentExportDocument(IncidentDocument):
    """`brctl incident export -o json`; `html` is null unless `--format html` asked for it."""

    markdown: str
    html: str | None


IncidentRow = TypedDict(
    "IncidentRow",
    {
        "id": str,
        "began_at": str,
        "state": str,
        "class": str,
        "folded": str,
        "job": str | None,
        "took": str,
        "runs": str | None,
    },
)


class IncidentListDocument(Envelope):
    """`brctl incident list`, newest first."""

    incidents: list[IncidentRow]


class AlertRow(TypedDict):
    """An incident that an alert opened, repeated or closed."""

    id: str
    alert: str
    folded: str
    job: str | None


class IngestedDocument(Envelope):
    """`brctl ingest alertmanager`."""

    opened: list[AlertRow]
    repeated: list[AlertRow]
    closed: list[AlertRow]
    ignored: int


class SinkDocument(TypedDict):
    """Who is told; what keeps it from working."""

    sink: str
    to: str
    when: list[str]
    failures: int
    last_failure: str | None
    wrong: list[str]


class NotifySinksDocument(Envelope):
    """`brctl notify list`."""

    sinks: list[SinkDocument]
    ticket: str | None


class DeliveryDocument(TypedDict):
    """What became of one delivery."""

    sink: str
    told: str
    why: str | None


class NotifyTrialDocument(Envelope):
    """`brctl notify test`."""

    deliveries: list[DeliveryDocument]


class RenderedNoticeDocument(Envelope):
    """`brctl notify render`: `body` is what the sink would get, in that sink's own shape."""

    to: Literal["slack", "pagerduty", "alertmanager", "webhook"]
    body: dict[str, Any] | list[Any]


NotificationBody = TypedDict(
    "NotificationBody",
    {
        "event": str,
        "state": str,
        "dedup_key": str,
        "severity": str,
        "summary": str,
        "at": str,
        "class": str | None,
        "suspects": NodeSetDocument,
        "job": str | None,
        "do": str | None,
        "why": str | None,
        "cost_if_wrong": str | None,
        "needs": str | None,
        "runbook": str | None,
        "lines_left_out": int,
    },
)


class ToldRunDocument(TypedDict):
    """The run that somebody is told of."""

    id: str
    playbook: str
    by: str
    result: str
    exit_code: int | None
    why: str | None
    nodes: list[str]
    folded: str
    steps: list[str]


class NotificationDocument(Envelope):
    """What webhooks, hooks and ticket programs read."""

    notification: NotificationBody
    verdict: VerdictBody | None
    run: ToldRunDocument | None


class IncidentRecordDocument(Envelope):
    """`brctl incident record`; `taken_out` counts secrets, `cuts` names what it lacks."""

    file: str
    bytes: int
    digest: str
    looks: list[str]
    taken_out: dict[str, int]
    cuts: list[str]


class JudgedAgainDocument(TypedDict):
    """One recorded look, as it was told and as it is judged now."""

    id: str
    made_by: str
    change: str
    then: list[VerdictBody]
    now: list[VerdictBody]
    not_recorded: list[str]


class IncidentReplayDocument(Envelope):
    """`brctl incident replay`."""

    file: str
    digest: str
    version: str
    looks: list[JudgedAgainDocument]


class ListDifferenceDocument(TypedDict):
    """Lines of one list of a verdict that stand in it only then, or only now."""

    what: str
    then: list[str]
    now: list[str]


class LookDiffDocument(TypedDict):
    """Why one recorded look is told otherwise."""

    id: str
    made_by: str
    change: str
    differences: list[ListDifferenceDocument]


class IncidentDiffDocument(Envelope):
    """`brctl incident diff`; `rules` is the folder that was named."""

    file: str
    version: str
    rules: str | None
    looks: list[LookDiffDocument]


class IncidentRedactionDocument(Envelope):
    """`brctl incident redact`; `members` counts changed lines, `verdict` is what redaction did."""

    file: str
    bytes: int
    digest: str
    profile: str
    taken_out: dict[str, int]
    pseudonyms: dict[str, int]
    members: dict[str, int]
    cuts: list[str]
    verdict: str


class IncidentImportDocument(Envelope):
    """`brctl incident import`; `source` is the tool, `verdict` what the logs alone say."""

    file: str
    bytes: int
    source: str
    logs: int
    hosts: list[str]
    cuts: list[str]
    verdict: VerdictBody


class PseudonymDocument(TypedDict):
    """A pseudonym and what it stands for; null where it was never given here."""

    pseudonym: str
    kind: str | None
    name: str | None


class IncidentNamesDocument(Envelope):
    """`brctl incident names`."""

    names: list[PseudonymDocument]


ScoredLookDocument = TypedDict(
    "ScoredLookDocument",
    {"file": str, "look": str, "class": str, "nodes": list[str], "now": str, "score": str},
)


class IncidentScoresDocument(Envelope):
    """`brctl check incidents`; `unconfirmed` are files of which nobody confirmed a cause."""

    scores: dict[str, float]
    looks: list[ScoredLookDocument]
    unconfirmed: list[str]
