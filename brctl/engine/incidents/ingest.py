"""Alerts from outside become incidents; they never start a run."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from brctl.engine.incidents import alert_store
from brctl.model.alert import Alert, Ingested
from brctl.model.inventory import Inventory

NODE_LABELS = ("node", "nodename", "hostname", "Hostname", "host", "kubernetes_node", "instance")
JOB_LABELS = ("brctl_job", "training_job", "job_name", "job")
"""Prometheus calls its own scrape configuration `job`: it counts only when we know such a job."""


def ingest_alerts(
    state_dir: Path, inventory: Inventory, jobs: Iterable[str], alerts: Sequence[Alert],
    now_at: datetime,
) -> Ingested:  # fmt: skip
    """Open and close incidents, each alert once.

    Raises:
        ConfigError: A stored incident cannot be read.
        UnavailableError: There are too many incidents; the alerts before it are kept.
        OSError: The state directory cannot be written.
    """
    ingested, known = Ingested(), frozenset(jobs)
    for alert in alerts:
        if alert.ends_at is not None:
            closed = alert_store.close(state_dir, alert, now_at)
            if closed is None:
                ingested.ignored.append(alert)
            else:
                ingested.closed.append(closed)
            continue
        nodes, job = nodes_of(alert, inventory), job_of(alert, known)
        incident, is_new = alert_store.open_once(state_dir, alert, nodes, job, now_at)
        (ingested.opened if is_new else ingested.repeated).append(incident)
    return ingested


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
