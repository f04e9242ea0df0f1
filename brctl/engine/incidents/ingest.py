"""Alerts from outside become incidents, and may start a look; they never start a run."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from brctl.engine.controller.wiring import World
from brctl.engine.incidents import alert_store
from brctl.engine.incidents.notify_runs import Say
from brctl.engine.incidents.notify_verdicts import notify_diagnosis
from brctl.engine.job.diagnose import diagnose
from brctl.model.alert import Alert, AlertIncident, Ingested
from brctl.model.inventory import Inventory
from brctl.model.verdict import Verdict

NODE_LABELS = ("node", "nodename", "hostname", "Hostname", "host", "kubernetes_node", "instance")
JOB_LABELS = ("brctl_job", "training_job", "job_name", "job")
"""Prometheus calls its own scrape configuration `job`: it counts only when we know such a job."""

LOOK_AT = 64
"""Nodes one look asks; an alert that names more is for `brctl dx` and a person."""


def take(
    state_dir: Path, inventory: Inventory, jobs: Iterable[str], alerts: Sequence[Alert],
    now_at: datetime,
) -> Ingested:  # fmt: skip
    """Open and close incidents, each alert once.

    Raises:
        ConfigError: A stored incident is damaged.
        OSError: The state directory cannot be written.
    """
    taken, known = Ingested(), frozenset(jobs)
    for alert in alerts:
        if alert.ends_at is not None:
            closed = alert_store.close(state_dir, alert, now_at)
            if closed is None:
                taken.ignored.append(alert)
            else:
                taken.closed.append(closed)
            continue
        nodes, job = nodes_of(alert, inventory), job_of(alert, known)
        incident, is_new = alert_store.open_once(state_dir, alert, nodes, job, now_at)
        (taken.opened if is_new else taken.repeated).append(incident)
    return taken


def nodes_of(alert: Alert, inventory: Inventory) -> tuple[str, ...]:
    """The node an alert names, if it is one of ours: without its port, and without its domain."""
    for label in NODE_LABELS:
        name = alert.labels.get(label, "")
        for candidate in (name, name.rpartition(":")[0], name.partition(".")[0]):
            if candidate in inventory.nodes:
                return (candidate,)
    return ()


def job_of(alert: Alert, jobs: frozenset[str]) -> str:
    """The job an alert names, if it is one of ours."""
    return next((name for key in JOB_LABELS if (name := alert.labels.get(key, "")) in jobs), "")


async def look(
    world: World, incidents: Sequence[AlertIncident], say: Say
) -> Mapping[str, Sequence[Verdict]]:
    """Diagnose what new incidents name, and keep the verdicts with them; changes no node."""
    found: dict[str, Sequence[Verdict]] = {}
    for job, group in _by_job(incidents).items():
        about = world.jobs.get(job)
        names = tuple(about.nodes) if about else _named(group)
        if not names:
            say(f"{group[0].id} and {len(group) - 1} more name no node or job of ours: no look")
            continue
        if about is None and len(names) > LOOK_AT:
            say(f"{len(names)} nodes at once: look with brctl dx")
            continue
        diagnosis = await diagnose(world, about, names)
        await notify_diagnosis(world, diagnosis, say)
        for incident in group:
            found[incident.id] = diagnosis.verdicts
            kept = tuple(verdict.id for verdict in diagnosis.verdicts)
            alert_store.add_verdicts(world.state_dir, incident.id, kept)
    return found


def _named(incidents: Iterable[AlertIncident]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node for incident in incidents for node in incident.nodes))


def _by_job(incidents: Iterable[AlertIncident]) -> dict[str, list[AlertIncident]]:
    groups: dict[str, list[AlertIncident]] = {}
    for incident in incidents:
        groups.setdefault(incident.job, []).append(incident)
    return groups
