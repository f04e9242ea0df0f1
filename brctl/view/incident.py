"""An incident on one time line: the fault, the verdict, the runs, the notes; and its post-mortem.

An incident is a verdict, or an alert from outside, with what followed from it. Nothing is stored
twice: the line is built from the verdict's evidence, the journals of the runs it led to, and the
notes people left.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from brctl.model.alert import AlertIncident
from brctl.model.evidence import Role, Weight
from brctl.model.exit_codes import ExitCode
from brctl.model.nodeset import fold
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.result import RunState
from brctl.model.units import describe_duration, rfc3339, utc_text
from brctl.model.verdict import Verdict
from brctl.playbook.run import Run
from brctl.view.documents import node_set
from brctl.view.notices.page import Json, Page
from brctl.view.redact import redact
from brctl.view.text import columns, printable

Note = tuple[datetime, str, str]
TEXT, TITLE = 1000, 300


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One line of the time line."""

    at: datetime
    kind: str
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Incident:
    """What happened, oldest first.

    Attributes:
        about: The fault class, or the name of the alert.
        belief: `high (0.97)`; "" when nobody has decided anything.
        state: `open`, or what became of it.
    """

    id: str
    title: str
    about: str
    belief: str
    nodes: tuple[str, ...]
    job: str
    state: str
    runs: tuple[str, ...]
    moments: tuple[TimelineEntry, ...]

    @property
    def began_at(self) -> datetime:
        return self.moments[0].at

    @property
    def recovered_at(self) -> datetime | None:
        """When a run for it ended well, or its alert was resolved."""
        return next((m.at for m in self.moments if m.kind == "recovered"), None)

    @property
    def took(self) -> str:
        """How long it lasted, for a list."""
        if self.recovered_at is not None:
            return describe_duration((self.recovered_at - self.began_at).total_seconds())
        return "open" if self.state == "open" else "-"


def verdict_incident(
    verdict: Verdict, state: str, runs: Sequence[Run], notes: Iterable[Note]
) -> Incident:
    """A verdict with the runs that acted on it."""
    moments = [
        TimelineEntry(
            item.at,
            "fault" if item.role is Role.ROOT else "impact",
            f"{item.subject}: {item.text}",
            item.source,
        )
        for item in verdict.evidence
        if item.at is not None
        and item.weight is not Weight.CLEARS
        and item.at <= verdict.decided_at
    ]
    sure = verdict.confidence.value
    says = f"{verdict.id} {verdict.fault.value} {fold(verdict.nodes) or 'no node'} {sure.upper()}"
    moments.append(TimelineEntry(verdict.decided_at, "diagnosed", says, "diagnose"))
    return Incident(
        id=verdict.id,
        title=verdict.title,
        about=verdict.fault.value,
        belief=f"{sure} ({verdict.probability:.2f})",
        nodes=verdict.nodes,
        job=verdict.job,
        state=state,
        runs=tuple(run.name for run in runs),
        moments=_in_order(moments, runs, notes),
    )


def alert_incident(
    alert: AlertIncident, verdicts: Sequence[Verdict], notes: Iterable[Note]
) -> Incident:
    """An alert that came from outside, with what a diagnosis of it found."""
    moments = [
        TimelineEntry(alert.starts_at, "fault", alert.summary, alert.source),
        TimelineEntry(alert.opened_at, "opened", f"{alert.name} {alert.fingerprint}", "ingest"),
        *(
            TimelineEntry(
                v.decided_at, "diagnosed", f"{v.id} {v.fault.value} {fold(v.nodes)}", "diagnose"
            )
            for v in verdicts
        ),
    ]
    if alert.closed_at is not None:
        moments.append(
            TimelineEntry(alert.closed_at, "recovered", "the alert was resolved", alert.source)
        )
    return Incident(
        id=alert.id,
        title=alert.summary,
        about=alert.name,
        belief="",
        nodes=alert.nodes,
        job=alert.job,
        state="closed" if alert.closed_at else "open",
        runs=(),
        moments=_in_order(moments, (), notes),
    )


def run_incident(run: Run, notes: Iterable[Note]) -> Incident:
    """A run that a person asked for: no verdict stands behind it."""
    playbook = run.playbook
    first = TimelineEntry(run.events[0].at, "asked", f"{run.name} {playbook.name}", "people")
    return Incident(
        id=run.name,
        title=playbook.title,
        about=playbook.name,
        belief="",
        nodes=run.nodes,
        job=run.job,
        state="closed",
        runs=(run.name,),
        moments=_in_order([first], (run,), notes),
    )


def _in_order(
    moments: Sequence[TimelineEntry], runs: Iterable[Run], notes: Iterable[Note]
) -> tuple[TimelineEntry, ...]:
    run_entries = (moment for run in runs for moment in _run_entries(run))
    note_entries = (TimelineEntry(at, "note", f"{by}: {text}", "people") for at, by, text in notes)
    return tuple(sorted([*moments, *run_entries, *note_entries], key=lambda moment: moment.at))


def _run_entries(run: Run) -> Iterable[TimelineEntry]:
    for event in run.events:
        described = _describe(event, run.playbook.name)
        if described:
            yield TimelineEntry(
                event.at, described[0], f"{run.name} {described[1]}".strip(), "journal"
            )


_HOOKS = {"notify.page": "told", "notify.chat": "told", "incident.note": "note"}


def _describe(event: Event, playbook: str) -> tuple[str, str] | None:
    text = {key: str(value) for key, value in event.fields.items()}
    if event.type is EventType.RUN_STARTED:
        return "run", f"{playbook} started by {text.get('by', '?')}"
    if event.type is EventType.RUN_RESUMED:
        forward = ", forward again" if event.fields.get("forward") is True else ""
        return "run", f"resumed by {text.get('by', '?')}{forward}"
    if event.type is EventType.APPROVAL_ASKED:
        return "asked", f"approval before {text.get('step', '?')}"
    if event.type is EventType.APPROVAL_GIVEN:
        return "approved", f"by {text.get('by', '?')}"
    if event.type is EventType.STEP_RESULT and event.fields.get("ok") is False:
        return "failed", f"{text.get('step', '?')}: {text.get('error', '')}"
    if event.type is EventType.STEP_RESULT and event.fields.get("changed") is True:
        return "changed", f"{text.get('step', '?')}: {text.get('say', '')}"
    if event.type is EventType.HOOK_RESULT and text.get("uses") in _HOOKS:
        return _HOOKS[text["uses"]], text.get("say") or text.get("error", "")
    if event.type is EventType.END:
        word = "recovered" if text.get("result") == RunState.OK else "ended"
        return word, f"{text.get('result', '')} {text.get('why', '')}".strip()
    return None


def phases(incident: Incident) -> str:
    """How the time was spent, between the moments that are known."""
    marks = {m.kind: m.at for m in reversed(incident.moments)}
    order = ("fault", "diagnosed", "run", "approved", "recovered")
    known = [(name, marks[name]) for name in order if name in marks]
    parts = [
        f"{before} to {after} {describe_duration(max((b - a).total_seconds(), 0))}"
        for (before, a), (after, b) in pairwise(known)
    ]
    return "   ".join(parts) or "only one moment is known"


def markdown(incident: Incident, now_at: datetime) -> str:
    """The post-mortem's raw material, to paste into a document; secrets are taken out."""
    belief = f", confidence {incident.belief}" if incident.belief else ""
    lines = [
        f"# Incident {escape_markdown(incident.id)}: {escape_markdown(incident.title)}", "",
        f"- class: {escape_markdown(incident.about)}{belief}",
        f"- nodes: {escape_markdown(fold(incident.nodes) or 'none')}",
        f"- job: {escape_markdown(incident.job or 'none')}",
        f"- runs: {' '.join(incident.runs) or 'none'}",
        f"- exported: {utc_text(now_at)}", "",
        "| at | since | what | text | source |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for moment in incident.moments:
        since = (moment.at - incident.began_at).total_seconds()
        text, source = escape_markdown(moment.text), escape_markdown(moment.source)
        at = utc_text(moment.at)
        lines.append(f"| {at} | +{since:.0f} s | {moment.kind} | {text} | {source} |")
    return "\n".join([*lines, "", f"Phases: {phases(incident)}", ""])


def escape_markdown(text: str) -> str:
    """Text that can neither end a table cell nor start markup."""
    plain = printable(redact(text), TEXT)
    for char in "\\|`*_<>[]#":
        plain = plain.replace(char, f"\\{char}")
    return plain


def incident_document(incident: Incident) -> dict[str, Json]:
    """The keys of an Incident document; secrets are taken out."""
    return {
        "incident": {
            "id": incident.id,
            "title": printable(redact(incident.title), TITLE),
            "class": printable(incident.about, 200),
            "state": incident.state,
            "suspects": node_set(incident.nodes),
            "job": incident.job or None,
            "runs": list(incident.runs),
            "began_at": rfc3339(incident.began_at),
            "recovered_at": rfc3339(incident.recovered_at) if incident.recovered_at else None,
            "moments": _moment_documents(incident),
        }
    }


def _moment_documents(incident: Incident) -> list[dict[str, Json]]:
    return [
        {
            "at": rfc3339(moment.at),
            "since_seconds": round((moment.at - incident.began_at).total_seconds(), 3),
            "what": moment.kind,
            "text": printable(redact(moment.text), TEXT),
            "source": printable(moment.source, 100),
        }
        for moment in incident.moments
    ]


def incident_page(incident: Incident) -> Page:
    """The answer of `brctl incident show`: the time line with seconds since the fault."""
    rows = [("AT", "S", "WHAT", "SOURCE", "")]
    for moment in incident.moments:
        since = (moment.at - incident.began_at).total_seconds()
        text = printable(redact(moment.text), TITLE)
        source = printable(moment.source, 16)
        at = utc_text(moment.at, incident.began_at)
        rows.append((at, f"+{since:.0f}", moment.kind, source, text))
    title = printable(redact(incident.title), TITLE)
    head = f"{incident.id}  {incident.state}  {printable(incident.about, 60)}: {title}"
    began = f"began   {utc_text(incident.began_at)}"
    text = "\n".join([head, began, columns(rows), f"phases  {phases(incident)}"])
    steps = (f"brctl incident export {incident.id}",)
    moments = tuple({"incident": incident.id, **moment} for moment in _moment_documents(incident))
    body = incident_document(incident)
    return Page("Incident", body, text, names=incident.nodes, next=steps, table=moments)


def incident_list_page(incidents: Sequence[Incident]) -> Page:
    """The answer of `brctl incident list`, newest first."""
    rows = [("INCIDENT", "BEGAN", "STATE", "TOOK", "CLASS", "JOB", "NODES", "RUNS")]
    rows += [
        (
            incident.id, utc_text(incident.began_at), incident.state, incident.took,
            printable(incident.about, 40), printable(incident.job or "-"),
            printable(fold(incident.nodes) or "-"), " ".join(incident.runs) or "-",
        )
        for incident in incidents
    ]  # fmt: skip
    documents = tuple(_row(incident) for incident in incidents)
    text = columns(rows) if incidents else "no incident: no verdict has found a fault"
    names = tuple(incident.id for incident in incidents)
    return Page("IncidentList", {"incidents": list(documents)}, text, ExitCode.OK, names, documents)


def _row(incident: Incident) -> dict[str, Json]:
    return {
        "id": incident.id,
        "began_at": rfc3339(incident.began_at),
        "state": incident.state,
        "class": printable(incident.about, 200),
        "folded": fold(incident.nodes),
        "job": incident.job or None,
        "took": incident.took,
        "runs": " ".join(incident.runs) or None,
    }
