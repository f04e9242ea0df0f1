"""`brctl ingest alertmanager`: alerts from a file, from stdin, or from Alertmanager itself."""

import asyncio
import ipaddress
import os
import queue
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.output import say
from brctl.engine.application.alerts import diagnose_incidents
from brctl.engine.controller.clock import now
from brctl.engine.controller.wiring import open_controller
from brctl.engine.incidents.alert_server import AlertServer
from brctl.engine.incidents.ingest import ingest_alerts
from brctl.evidence.alert_webhook import LIMIT_BYTES, BadAlertError, parse_alerts
from brctl.inventory.load import load_inventory
from brctl.library.config import Settings
from brctl.library.jobs import load_job
from brctl.model.alert import AlertIncident, Ingested
from brctl.model.errors import ConfigError, UsageError
from brctl.model.exit_codes import ExitCode
from brctl.notify.secret_file import read_secret
from brctl.view.notices.ingested import ingested_document, ingested_page

app = new_app()
MAX_PENDING_DIAGNOSES = 16


@app.callback()
def ingest() -> None:
    """Take alerts from outside; they open incidents and never start a run."""


@app.command()
def alertmanager(
    ctx: typer.Context,
    source: Annotated[str | None, typer.Argument(help="a webhook body; - is stdin")] = None,
    listen: Annotated[str | None, typer.Option("--listen", help="HOST:PORT to serve")] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="bearer token senders must show")
    ] = None,
    diagnose: Annotated[bool, typer.Option("--dx", help="look at what they name")] = False,
) -> None:
    """Open an incident for each firing alert, once; close it when the alert is resolved."""
    invocation: Invocation = ctx.obj
    if (source is None) == (listen is None):
        raise UsageError("either a file (or -) or --listen", hint="--listen 127.0.0.1:9095")
    settings = invocation.settings()
    intake = _AlertIntake(settings)
    if listen is not None:
        _serve(settings, intake, listen, token_file, diagnose=diagnose)
    path = source or "-"
    try:
        ingested = intake.ingest_alerts(_read(path))
    except BadAlertError as exc:
        raise ConfigError(f"{path}: {exc}") from exc
    if diagnose and ingested.opened:
        asyncio.run(_diagnose(settings, ingested.opened))
    invocation.finish(ingested_page(ingested), settings.context)


def _read(path: str) -> bytes:
    try:
        if path == "-":
            return sys.stdin.buffer.read(LIMIT_BYTES + 1)
        with Path(path).open("rb") as stream:
            return stream.read(LIMIT_BYTES + 1)
    except OSError as exc:
        raise UsageError(f"{path}: cannot be read: {exc.strerror}") from exc


class _AlertIntake:
    """Takes bodies one after the other; what nodes and jobs there are is read once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._inventory = load_inventory(settings)
        self._jobs = [load_job(path).name for path in settings.jobs]
        self._lock = threading.Lock()

    def ingest_alerts(self, raw: bytes) -> Ingested:
        alerts = parse_alerts(raw)
        with self._lock:
            return ingest_alerts(
                self._settings.state_dir, self._inventory, self._jobs, alerts, now()
            )


async def _diagnose(settings: Settings, incidents: Sequence[AlertIncident]) -> None:
    async with open_controller(settings) as controller:
        await diagnose_incidents(controller, incidents, say)


def _serve(
    settings: Settings,
    intake: _AlertIntake,
    listen: str,
    token_file: Path | None,
    *,
    diagnose: bool,
) -> None:
    host, port = _address(listen)
    token = read_secret(token_file) if token_file else ""
    if not token and not _is_here(host):
        raise UsageError(
            f"--listen {listen}: others can reach it, so senders must show a token",
            hint="--token-file FILE, or listen on 127.0.0.1",
        )
    pending: queue.Queue[Sequence[AlertIncident]] = queue.Queue(MAX_PENDING_DIAGNOSES)

    def ingest_body(raw: bytes) -> Mapping[str, object]:
        ingested = intake.ingest_alerts(raw)
        if diagnose and ingested.opened:
            try:
                pending.put_nowait(ingested.opened)
            except queue.Full:
                say("warning: too many alerts at once, not every one is looked at: brctl dx")
        return ingested_document(ingested)

    try:
        server = AlertServer((host, port), ingest_body, token, say)
    except OSError as exc:
        raise UsageError(f"--listen {listen}: {exc.strerror}") from exc
    threading.Thread(target=_diagnose_each, args=(settings, pending), daemon=True).start()
    signal.signal(signal.SIGTERM, _stop)
    say(f"listening on {host}:{server.server_address[1]}; Ctrl-C ends it")
    with server:
        server.serve_forever(0.2)


def _stop(_number: int, _frame: object) -> None:
    """Leave at once: every file is written whole or not at all, and Alertmanager posts again."""
    os._exit(int(ExitCode.TERMINATED))


def _diagnose_each(settings: Settings, pending: "queue.Queue[Sequence[AlertIncident]]") -> None:
    """One diagnosis after the other: a storm of alerts must not become a storm of sweeps."""
    while True:
        incidents = pending.get()
        try:
            asyncio.run(_diagnose(settings, incidents))
        except Exception as exc:  # noqa: BLE001 - the next alert is looked at all the same
            say(f"warning: {incidents[0].id} could not be looked at: {exc}")


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--listen {text}: write HOST:PORT, 127.0.0.1:9095")
    return host.strip("[]"), int(port)


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
