"""Incidents as they lie on disk: verdicts, alerts, the runs they led to, and people's notes."""

from collections.abc import Mapping
from pathlib import Path

from brctl.engine.incidents import alert_store
from brctl.engine.incidents.verdict_store import StoredVerdict, current, is_known, load_all
from brctl.engine.runs.read_run import sound_runs
from brctl.journal.incident_notes import read_notes
from brctl.model.errors import UsageError, did_you_mean
from brctl.model.fault import FaultClass
from brctl.playbook.run import Run
from brctl.view.incident import Incident, alert_incident, run_incident, verdict_incident
from brctl.view.notices.contents import RunFacts


def load_incidents(state_dir: Path, named: str | None = None) -> list[Incident]:
    """Every incident, newest first; a look that found no cause only where it is named."""
    notes, runs, stored = read_notes(state_dir), runs_by_verdict(state_dir), load_all(state_dir)
    found = [
        verdict_incident(
            s.verdict, s.state.value, runs.get(s.verdict.id, []), notes.get(s.verdict.id, ())
        )
        for s in stored
        if s.verdict.id == named
        or _is_incident(s, has_record=s.verdict.id in runs or s.verdict.id in notes)
    ]
    known: Mapping[str, StoredVerdict] = {s.verdict.id: s for s in stored}
    for alert in alert_store.load_all(state_dir):
        verdicts = [known[name].verdict for name in alert.verdicts if name in known]
        found.append(alert_incident(alert, verdicts, notes.get(alert.id, ())))
    return sorted(found, key=lambda incident: incident.began_at, reverse=True)


def _is_incident(stored: StoredVerdict, *, has_record: bool) -> bool:
    """A look that found nothing, or no cause, is none until somebody acts on it or notes it."""
    if stored.verdict.fault is FaultClass.NO_FAULT:
        return False
    return stored.verdict.fault is not FaultClass.UNKNOWN or has_record


def runs_by_verdict(state_dir: Path) -> dict[str, list[Run]]:
    """Runs by the verdict they acted on, oldest first."""
    found: dict[str, list[Run]] = {}
    for run in sound_runs(state_dir):
        found.setdefault(run.verdict_id, []).append(run)
    return found


def incident_of_run(state_dir: Path, facts: RunFacts) -> Incident:
    """The incident one run belongs to: its verdict's, or its own when a person asked for it."""
    notes = read_notes(state_dir)
    if facts.verdict is not None:
        of_verdict = notes.get(facts.verdict.id, ())
        return verdict_incident(facts.verdict, "open", [facts.run], of_verdict)
    return run_incident(facts.run, notes.get(facts.run.name, ()))


def find_incident(state_dir: Path, name: str | None) -> Incident:
    """The named incident, that of the verdict which took a named one's place, or the only open one.

    Raises:
        UsageError: There is none of this name, or not exactly one is open.
    """
    if name is not None and is_known(state_dir, name):
        name = current(state_dir, name).verdict.id
    return pick_incident(load_incidents(state_dir, name), name)


def pick_incident(incidents: list[Incident], name: str | None) -> Incident:
    """The named incident, or the only open one.

    Raises:
        UsageError: There is none of this name, or not exactly one is open.
    """
    if name is not None:
        found = next((i for i in incidents if i.id.upper() == name.upper()), None)
        if found is None:
            known = [incident.id for incident in incidents]
            raise UsageError(f"no incident `{name}`; {did_you_mean(name, known)}")
        return found
    still = [incident for incident in incidents if incident.state == "open"]
    if len(still) == 1:
        return still[0]
    names = ", ".join(i.id for i in still[:10]) or "none"
    raise UsageError(f"which incident? open: {names}", hint="brctl incident list")
