"""What comes of alerts from outside: incidents, and a look at what the new ones name."""

from collections.abc import Iterable, Mapping, Sequence

from brctl.engine.application.diagnose import DiagnosisScope, diagnose
from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents import alert_store
from brctl.engine.incidents.notify_runs import Say
from brctl.model.alert import AlertIncident
from brctl.model.verdict import Verdict

LOOK_AT = 64
"""Nodes one look asks; an alert that names more is for `brctl dx` and a person."""


async def look(
    controller: Controller, incidents: Sequence[AlertIncident], say: Say
) -> Mapping[str, Sequence[Verdict]]:
    """Diagnose what new incidents name, and keep the verdicts with them; changes no node."""
    found: dict[str, Sequence[Verdict]] = {}
    for job, group in _by_job(incidents).items():
        about = controller.jobs.get(job)
        names = tuple(about.nodes) if about else _named(group)
        if not names:
            say(f"{group[0].id} and {len(group) - 1} more name no node or job of ours: no look")
            continue
        if about is None and len(names) > LOOK_AT:
            say(f"{len(names)} nodes at once: look with brctl dx")
            continue
        diagnosis = await diagnose(controller, DiagnosisScope(about, names), say)
        for incident in group:
            found[incident.id] = diagnosis.verdicts
            kept = tuple(verdict.id for verdict in diagnosis.verdicts)
            alert_store.add_verdicts(controller.state_dir, incident.id, kept)
    return found


def _named(incidents: Iterable[AlertIncident]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node for incident in incidents for node in incident.nodes))


def _by_job(incidents: Iterable[AlertIncident]) -> dict[str, list[AlertIncident]]:
    groups: dict[str, list[AlertIncident]] = {}
    for incident in incidents:
        groups.setdefault(incident.job, []).append(incident)
    return groups
