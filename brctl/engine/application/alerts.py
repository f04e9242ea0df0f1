"""Alerts from outside: incidents, a diagnosis of what they name, and the server that reads them.

They come from a file or over HTTP, and never start a run.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from brctl.engine.application.diagnose import DiagnosisScope, diagnose
from brctl.engine.controller.clock import now
from brctl.engine.controller.wiring import Controller, open_controller
from brctl.engine.incidents import alert_store
from brctl.engine.incidents.alert_server import AlertServer
from brctl.engine.incidents.ingest import ingest_alerts
from brctl.engine.incidents.notify_runs import Say
from brctl.evidence.alert_webhook import parse_alerts
from brctl.inventory.load import load_inventory
from brctl.library.config import Settings
from brctl.library.jobs import load_job
from brctl.model.alert import AlertIncident, Ingested
from brctl.model.errors import UsageError
from brctl.model.verdict import Verdict

MAX_PENDING_DIAGNOSES = 16
MAX_NODES = 64
"""Nodes one diagnosis asks; an alert that names more is for `brctl dx` and a person."""


class AlertIntake:
    """Reads alerts one after the other; what nodes and jobs there are is looked up once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._inventory = load_inventory(settings)
        self._jobs = [load_job(path).name for path in settings.jobs]
        self._lock = threading.Lock()

    def ingest_alerts(self, raw: bytes) -> Ingested:
        """Open and close incidents.

        Raises:
            BadAlertError: It is no body of Alertmanager.
        """
        alerts = parse_alerts(raw)
        state_dir = self._settings.state_dir
        with self._lock:
            return ingest_alerts(state_dir, self._inventory, self._jobs, alerts, now())


async def diagnose_alerts(settings: Settings, incidents: Sequence[AlertIncident], say: Say) -> None:
    """Diagnose what new incidents name."""
    async with open_controller(settings) as controller:
        await diagnose_incidents(controller, incidents, say)


def serve_alerts(
    settings: Settings,
    address: tuple[str, int],
    token: str,
    document: Callable[[Ingested], Mapping[str, object]],
    say: Say,
    *,
    diagnose: bool,
) -> None:
    """Serve Alertmanager's webhook until this process ends; a sender is answered `document`.

    Raises:
        UsageError: The address cannot be listened on.
    """
    intake, pending = AlertIntake(settings), PendingDiagnoses(settings, say)

    def ingest_body(raw: bytes) -> Mapping[str, object]:
        ingested = intake.ingest_alerts(raw)
        if diagnose and ingested.opened:
            pending.add(ingested.opened)
        return document(ingested)

    try:
        server = AlertServer(address, ingest_body, token, say)
    except OSError as exc:
        raise UsageError(f"cannot listen on {address[0]}:{address[1]}: {exc.strerror}") from exc
    with server:
        threading.Thread(target=pending.diagnose_each, daemon=True).start()
        say(f"listening on {address[0]}:{server.server_address[1]}; Ctrl-C ends it")
        server.serve_forever(0.2)


class PendingDiagnoses:
    """One diagnosis after the other: a storm of alerts must not become a storm of sweeps."""

    def __init__(self, settings: Settings, say: Say) -> None:
        self._settings, self._say = settings, say
        self._pending: queue.Queue[Sequence[AlertIncident]] = queue.Queue(MAX_PENDING_DIAGNOSES)

    def add(self, incidents: Sequence[AlertIncident]) -> None:
        """Have incidents diagnosed when it is their turn."""
        try:
            self._pending.put_nowait(incidents)
        except queue.Full:
            self._say("warning: too many alerts at once, not every one is looked at: brctl dx")

    def diagnose_each(self) -> None:
        """Diagnose for as long as the process lives."""
        while True:
            incidents = self._pending.get()
            try:
                asyncio.run(diagnose_alerts(self._settings, incidents, self._say))
            except Exception as exc:  # noqa: BLE001 - the next alert is looked at all the same
                self._say(f"warning: {incidents[0].id} could not be looked at: {exc}")


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
