"""`brctl schedule systemd|cron`: a regular sweep as ready units or a crontab line."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.typed import typed

app = new_app()

Every = Annotated[str | None, typer.Option("--every", help="5m, 30m, 2h")]
Prom = Annotated[Path | None, typer.Option("--prom", help="metrics file of node_exporter")]
Program = Annotated[str | None, typer.Option("--program", help="path of brctl on that host")]


@app.command("systemd")
def systemd(
    ctx: typer.Context, every: Every = None, prom: Prom = None, program: Program = None
) -> None:
    """Print a service and a timer; nothing is installed."""
    from brctl.view.schedule import systemd_units

    every_s = _every_s(ctx.obj, every)
    words = _command(ctx.obj, prom, program)
    text = typed("--program", words[0], lambda _: systemd_units(words, every_s))
    _finish(ctx.obj, "systemd", text)


@app.command("cron")
def cron(
    ctx: typer.Context, every: Every = None, prom: Prom = None, program: Program = None
) -> None:
    """Print a crontab line; nothing is installed."""
    from brctl.view.schedule import crontab_line

    every_s = _every_s(ctx.obj, every)
    _finish(ctx.obj, "cron", crontab_line(_command(ctx.obj, prom, program), every_s))


def _every_s(invocation: Invocation, flag: str | None) -> float:
    if flag is not None:
        return typed("--every", flag, _interval)
    return typed("sweep.interval", invocation.settings().sweep.interval, _interval)


def _interval(text: str) -> float:
    from brctl.model.units import parse_duration_s
    from brctl.view.schedule import calendar_of

    every_s = parse_duration_s(text)
    calendar_of(every_s)
    return every_s


def _command(invocation: Invocation, prom: Path | None, program: str | None) -> list[str]:
    """The sweep with the selection and context this command line names."""
    words = [program or shutil.which("brctl") or sys.argv[0], "sweep", "--cron"]
    for flag, value in (
        ("--context", invocation.context),
        ("--config", invocation.config and invocation.config.absolute()),
        ("-w", invocation.nodes),
        ("-x", invocation.exclude),
        ("--prom", prom and prom.absolute()),
    ):
        if value:
            words += [flag, str(value)]
    return words


def _finish(invocation: Invocation, form: str, text: str) -> None:
    from brctl.view.page import Page

    invocation.finish(Page("Schedule", {"form": form, "text": text}, text.rstrip("\n")))
