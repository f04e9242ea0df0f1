"""`brctl ingest alertmanager`: alerts from a file, from stdin, or from Alertmanager itself."""

import asyncio
import ipaddress
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.options import read_address
from brctl.cli.output import say
from brctl.engine.application.alerts import AlertIntake, diagnose_alerts, serve_alerts
from brctl.evidence.alert_webhook import LIMIT_BYTES, BadAlertError
from brctl.library.config import Settings
from brctl.model.errors import ConfigError, UsageError
from brctl.model.exit_codes import ExitCode
from brctl.notify.secret_file import read_secret
from brctl.view.notices.ingested import ingested_document, ingested_page

app = new_app()


@app.callback()
def ingest() -> None:
    """Read alerts from outside; they open incidents and never start a run."""


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
    if listen is not None:
        _serve(settings, listen, token_file, diagnose=diagnose)
    path = source or "-"
    try:
        ingested = AlertIntake(settings).ingest_alerts(_read(path))
    except BadAlertError as exc:
        raise ConfigError(f"{path}: {exc}") from exc
    if diagnose and ingested.opened:
        asyncio.run(diagnose_alerts(settings, ingested.opened, say))
    invocation.finish(ingested_page(ingested), settings.context)


def _read(path: str) -> bytes:
    try:
        if path == "-":
            return sys.stdin.buffer.read(LIMIT_BYTES + 1)
        with Path(path).open("rb") as stream:
            return stream.read(LIMIT_BYTES + 1)
    except OSError as exc:
        raise UsageError(f"{path}: cannot be read: {exc.strerror}") from exc


def _serve(settings: Settings, listen: str, token_file: Path | None, *, diagnose: bool) -> None:
    host, port = read_address(listen)
    token = read_secret(token_file) if token_file else ""
    if not token and not ipaddress.ip_address(host).is_loopback:
        raise UsageError(
            f"--listen {listen}: others can reach it, so senders must show a token",
            hint="--token-file FILE, or listen on 127.0.0.1",
        )
    signal.signal(signal.SIGTERM, _stop)
    serve_alerts(settings, (host, port), token, ingested_document, say, diagnose=diagnose)


def _stop(_number: int, _frame: object) -> None:
    """Leave at once: every file is written whole or not at all, and Alertmanager posts again."""
    os._exit(int(ExitCode.TERMINATED))
