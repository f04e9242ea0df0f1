"""Diagnose what alerts from outside name, and keep the verdicts with their incidents."""

from collections.abc import Iterable, Mapping, Sequence

from brctl.engine.application.diagnose import DiagnosisScope, diagnose
from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents import alert_store
from brctl.engine.incidents.notify_runs import Say
from brctl.model.alert import AlertIncident
from brctl.model.verdict import Verdict

MAX_NODES = 64
"""Nodes one diagnosis asks; an alert that names more is for `brctl dx` and a person."""


async def diagnose_incidents(
    controller: Controller, incidents: Sequence[AlertIncident], say: Say
) -> Mapping[str, Sequence[Verdict]]:
    """Diagnose what new incidents name, and keep the verdicts with them; changes no node."""
    found: dict[str, Sequence[Verdict]] = {}
    for job, group in _by_job(incidents).items():
        target = controller.jobs.get(job)
        names = tuple(target.nodes) if target else _named(group)
        if not names:
            say(f"{group[0].id} and {len(group) - 1} more name no node or job of ours: no look")
            continue
        if target is None and len(names) > MAX_NODES:
            say(f"{len(names)} nodes at once: look with brctl dx")
            continue
        diagnosis = await diagnose(controller, DiagnosisScope(target, names), say)
        for incident in group:
            found[incident.id] = diagnosis.verdicts
            verdict_ids = tuple(verdict.id for verdict in diagnosis.verdicts)
            alert_store.add_verdicts(controller.state_dir, incident.id, verdict_ids)
    return found


def _named(incidents: Iterable[AlertIncident]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node for incident in incidents for node in incident.nodes))


def _by_job(incidents: Iterable[AlertIncident]) -> dict[str, list[AlertIncident]]:
    groups: dict[str, list[AlertIncident]] = {}
    for incident in incidents:
        groups.setdefault(incident.job, []).append(incident)
    return groups
