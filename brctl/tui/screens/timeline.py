"""Screen 5's rows: the list of incidents, and one incident's time line; pure."""

from collections.abc import Sequence

from brctl.engine.incidents.verdict_store import StoredVerdict
from brctl.model.fault import FaultClass
from brctl.model.nodeset import fold
from brctl.playbook.run import Run
from brctl.tui.rows.row import Row, Tone, paragraph, row, safe, table
from brctl.tui.rows.times import Times
from brctl.tui.session.facts import Facts
from brctl.view.incident import Incident, alert_incident, phases, verdict_incident


def incidents_of(facts: Facts) -> list[Incident]:
    """Every verdict that found a fault and every alert from outside, newest first."""
    found = [
        _of_verdict(stored, facts)
        for stored in facts.verdicts
        if stored.verdict.fault is not FaultClass.NO_FAULT
    ]
    known = {stored.verdict.id: stored.verdict for stored in facts.verdicts}
    found += [
        alert_incident(
            alert, [known[v] for v in alert.verdicts if v in known], facts.notes.get(alert.id, ())
        )
        for alert in facts.alerts
    ]
    return sorted(found, key=lambda incident: incident.began_at, reverse=True)


def _of_verdict(stored: StoredVerdict, facts: Facts) -> Incident:
    verdict = stored.verdict
    runs = [r for r in facts.runs if isinstance(r, Run) and r.verdict_id == verdict.id]
    notes = facts.notes.get(verdict.id, ())
    return verdict_incident(verdict, stored.state.value, runs, notes)


_TONES = {
    "fault": Tone.CRIT, "failed": Tone.CRIT, "impact": Tone.WARN, "asked": Tone.WARN,
    "recovered": Tone.SPARE, "approved": Tone.SPARE, "changed": Tone.CORDON, "note": Tone.HEAD,
    "told": Tone.DIM,
}  # fmt: skip


def incident_list(incidents: Sequence[Incident], times: Times) -> list[Row]:
    """One line an incident."""
    body = []
    for incident in incidents:
        cells = (safe(incident.id, 20), times.of(incident.began_at), safe(incident.about, 40),
                 safe(fold(incident.nodes) or "-", 40), safe(incident.job or "-", 24),
                 incident.took, " ".join(incident.runs) or "-")  # fmt: skip
        body.append((cells, f"incident:{incident.id}"))
    if not body:
        return [row(("no incident: no verdict has found a fault", Tone.DIM))]
    return table(("INCIDENT", "BEGAN", "CLASS", "NODES", "JOB", "TOOK", "RUNS"), body, widest=24)


def timeline_rows(incident: Incident, width: int, times: Times) -> list[Row]:
    """The time line with seconds since the fault, then the phases."""
    rows = [row((f"{safe(incident.id, 20)}  ", Tone.HEAD), safe(incident.title, 300))]
    body = []
    for number, moment in enumerate(incident.moments):
        since = (moment.at - incident.began_at).total_seconds()
        tone = _TONES.get(moment.kind, Tone.PLAIN)
        cells = (times.of(moment.at), f"+{since:.0f}", (moment.kind, tone),
                 (safe(moment.source, 16), Tone.DIM), safe(moment.text, 300))  # fmt: skip
        body.append((cells, f"moment:{number}"))
    rows += table(("AT", "S", "WHAT", "SOURCE", ""), body, widest=20)
    return rows + paragraph("phases  ", phases(incident), width)
