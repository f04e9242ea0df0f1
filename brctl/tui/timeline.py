"""An incident on one time line: the fault, the verdict, the runs, the notes; pure.

An incident is a verdict with what followed from it. Nothing is stored twice: the line is built from
the verdict's evidence, the journals of the runs it led to, and the notes people left.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from brctl.engine.verdict_store import StoredVerdict
from brctl.model.event import Event, EventType
from brctl.model.evidence import Role, Weight
from brctl.model.fault import FaultClass
from brctl.model.nodeset import fold
from brctl.model.units import describe_duration, rfc3339
from brctl.tui.facts import Facts, RunFact
from brctl.tui.rows import Row, Tone, paragraph, row, safe, table
from brctl.tui.times import Times


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of the time line."""

    at: datetime
    kind: str
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Incident:
    """A verdict and everything that followed."""

    stored: StoredVerdict
    runs: tuple[RunFact, ...]
    moments: tuple[Moment, ...]

    @property
    def id(self) -> str:
        return self.stored.verdict.id

    @property
    def began_at(self) -> datetime:
        return self.moments[0].at

    @property
    def recovered_at(self) -> datetime | None:
        """When a run for this verdict ended well."""
        return next((m.at for m in self.moments if m.kind == "recovered"), None)


def incidents_of(facts: Facts) -> list[Incident]:
    """Every verdict that found a fault, newest first."""
    nothing = (FaultClass.NO_FAULT,)
    return [_incident(s, facts) for s in facts.verdicts if s.verdict.fault not in nothing]


def _incident(stored: StoredVerdict, facts: Facts) -> Incident:
    verdict = stored.verdict
    runs = tuple(run for run in facts.runs if run.verdict == verdict.id)
    moments = [
        Moment(
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
    where = fold(verdict.nodes) or "no node"
    says = f"{verdict.id} {verdict.fault.value} {where} {verdict.confidence.value.upper()}"
    moments.append(Moment(verdict.decided_at, "diagnosed", says, "diagnose"))
    moments += [m for run in runs for m in _run_moments(run)]
    moments += [
        Moment(at, "note", f"{by}: {text}", "people")
        for at, by, text in facts.notes.get(verdict.id, ())
    ]
    return Incident(stored, runs, tuple(sorted(moments, key=lambda m: m.at)))


def _run_moments(run: RunFact) -> Iterable[Moment]:
    for event in run.events:
        told = _told(event, run)
        if told:
            yield Moment(event.at, told[0], f"{run.name} {told[1]}".strip(), "journal")


def _told(event: Event, run: RunFact) -> tuple[str, str] | None:
    text = {key: str(value) for key, value in event.fields.items()}
    if event.type is EventType.RUN_STARTED:
        return "run", f"{run.playbook} started by {text.get('by', '?')}"
    if event.type is EventType.RUN_RESUMED:
        return "run", f"resumed by {text.get('by', '?')}"
    if event.type is EventType.APPROVAL_ASKED:
        return "asked", f"approval before {text.get('step', '?')}"
    if event.type is EventType.APPROVAL_GIVEN:
        return "approved", f"by {text.get('by', '?')}"
    if event.type is EventType.STEP_RESULT and event.fields.get("ok") is False:
        return "failed", f"{text.get('step', '?')}: {text.get('error', '')}"
    if event.type is EventType.STEP_RESULT and event.fields.get("changed") is True:
        return "changed", f"{text.get('step', '?')}: {text.get('say', '')}"
    if event.type is EventType.END:
        good = text.get("result") == "ok"
        return (
            "recovered" if good else "ended"
        ), f"{text.get('result', '')} {text.get('why', '')}".strip()
    return None


_TONES = {
    "fault": Tone.CRIT, "failed": Tone.CRIT, "impact": Tone.WARN, "asked": Tone.WARN,
    "recovered": Tone.SPARE, "approved": Tone.SPARE, "changed": Tone.CORDON, "note": Tone.HEAD,
}  # fmt: skip


def incident_list(incidents: Sequence[Incident], times: Times) -> list[Row]:
    """One line an incident."""
    body = []
    for incident in incidents:
        verdict, recovered = incident.stored.verdict, incident.recovered_at
        took = (
            describe_duration((recovered - incident.began_at).total_seconds())
            if recovered
            else "open"
            if incident.stored.state.value == "open"
            else "-"
        )
        cells = (safe(verdict.id, 20), times.of(incident.began_at), verdict.fault.value,
                 safe(fold(verdict.nodes) or "-", 40), safe(verdict.job or "-", 24), took,
                 " ".join(run.name for run in incident.runs) or "-")  # fmt: skip
        body.append((cells, f"incident:{verdict.id}"))
    if not body:
        return [row(("no incident: no verdict has found a fault", Tone.DIM))]
    return table(("INCIDENT", "BEGAN", "CLASS", "NODES", "JOB", "TOOK", "RUNS"), body, widest=24)


def timeline_rows(incident: Incident, width: int, times: Times) -> list[Row]:
    """The time line with seconds since the fault, then the phases."""
    rows = [
        row((f"{safe(incident.id, 20)}  ", Tone.HEAD), safe(incident.stored.verdict.title, 300))
    ]
    body = []
    for number, moment in enumerate(incident.moments):
        since = (moment.at - incident.began_at).total_seconds()
        tone = _TONES.get(moment.kind, Tone.PLAIN)
        cells = (times.of(moment.at), f"+{since:.0f}", (moment.kind, tone),
                 (safe(moment.source, 16), Tone.DIM), safe(moment.text, 300))  # fmt: skip
        body.append((cells, f"moment:{number}"))
    rows += table(("AT", "S", "WHAT", "SOURCE", ""), body, widest=20)
    return rows + paragraph("phases  ", phases(incident), width)


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
    """The post-mortem's raw material, to paste into a document."""
    verdict = incident.stored.verdict
    lines = [
        f"# Incident {_md(verdict.id)}: {_md(verdict.title)}", "",
        f"- class: {verdict.fault.value}, confidence {verdict.confidence.value}"
        f" ({verdict.probability:.2f})",
        f"- nodes: {_md(fold(verdict.nodes) or 'none')}",
        f"- job: {_md(verdict.job or 'none')}",
        f"- runs: {' '.join(run.name for run in incident.runs) or 'none'}",
        f"- exported: {rfc3339(now_at)}", "",
        "| at | since | what | text | source |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for moment in incident.moments:
        since = (moment.at - incident.began_at).total_seconds()
        lines.append(f"| {rfc3339(moment.at)} | +{since:.0f} s | {moment.kind} | {_md(moment.text)}"
                     f" | {_md(moment.source)} |")  # fmt: skip
    return "\n".join([*lines, "", f"Phases: {phases(incident)}", ""])


def _md(text: str) -> str:
    """Text that can neither end a table cell nor start markup."""
    plain = safe(text, 1000)
    for char in "\\|`*_<>[]#":
        plain = plain.replace(char, f"\\{char}")
    return plain
