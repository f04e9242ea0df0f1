"""`brctl schedule systemd|cron`: regular sweeps, tests of standbys or a watch, to install."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.typed import typed
from brctl.model.errors import UsageError

app = new_app()

Every = Annotated[str | None, typer.Option("--every", help="5m, 30m, 2h")]
Prom = Annotated[Path | None, typer.Option("--prom", help="metrics file of node_exporter")]
Program = Annotated[str | None, typer.Option("--program", help="path of brctl on that host")]

Standbys = Annotated[
    bool, typer.Option("--standby", help="`standby test` instead of the sweep; default every 1h")
]
STANDBY_TEST_S = 3600.0
"""Well within the lease of what is parked, so that one failed test in between ends nothing."""


@app.command("systemd")
def systemd(
    ctx: typer.Context,
    every: Every = None,
    prom: Prom = None,
    program: Program = None,
    standby: Standbys = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="a service that runs `brctl watch`, in place of a timer")
    ] = False,
    policy: Annotated[
        Path | None, typer.Option("--policy", help="with --watch: its WatchPolicy file")
    ] = None,
) -> None:
    """Print a service and a timer; nothing is installed."""
    from brctl.view.schedule import systemd_units, watch_unit

    if watch:
        if standby or prom or every:
            raise UsageError("--watch looks all the time; leave out --every, --prom, --standby")
        words = _watch_command(ctx.obj, program, policy)
        _finish(ctx.obj, "systemd", typed("--program", words[0], lambda _: watch_unit(words)))
        return
    every_s = _every_s(ctx.obj, every, standby)
    command_words = _command(ctx.obj, prom, program, standby)
    name = "brctl-standby" if standby else "brctl-sweep"
    text = typed(
        "--program", command_words[0], lambda _: systemd_units(command_words, every_s, name)
    )
    _finish(ctx.obj, "systemd", text)


@app.command("cron")
def cron(
    ctx: typer.Context,
    every: Every = None,
    prom: Prom = None,
    program: Program = None,
    standby: Standbys = False,
) -> None:
    """Print a crontab line; nothing is installed."""
    from brctl.view.schedule import crontab_line

    every_s = _every_s(ctx.obj, every, standby)
    command_words = _command(ctx.obj, prom, program, standby)
    _finish(ctx.obj, "cron", crontab_line(command_words, every_s, spread=not standby))


def _every_s(invocation: Invocation, flag: str | None, standby: bool) -> float:
    if flag is not None:
        return typed("--every", flag, _interval)
    if standby:
        return STANDBY_TEST_S
    return typed("sweep.interval", invocation.settings().sweep.interval, _interval)


def _interval(text: str) -> float:
    from brctl.model.units import parse_duration_s
    from brctl.view.schedule import calendar_of

    every_s = parse_duration_s(text)
    calendar_of(every_s)
    return every_s


def _command(
    invocation: Invocation, prom: Path | None, program: str | None, standby: bool
) -> list[str]:
    """The sweep, or the standbys' test, in the context this command line names."""
    if standby and (prom or invocation.nodes or invocation.exclude):
        raise UsageError(
            "--standby tests the whole pool and writes no metrics; leave out -w, --prom"
        )
    verb = ["standby", "test"] if standby else ["sweep"]
    command_words = [_program(program), *verb, "--cron", *_where(invocation)]
    return command_words + (["--prom", str(prom.absolute())] if prom else [])


def _program(named: str | None) -> str:
    return named or shutil.which("brctl") or sys.argv[0]


def _where(invocation: Invocation) -> list[str]:
    """The context and the nodes that this command line names."""
    named = (
        ("--context", invocation.context),
        ("--config", invocation.config and invocation.config.absolute()),
        ("-w", invocation.nodes),
        ("-x", invocation.exclude),
    )
    return [word for flag, value in named if value for word in (flag, str(value))]


def _watch_command(invocation: Invocation, program: str | None, policy: Path | None) -> list[str]:
    """The watch, in the context this command line names; the policy says how far it goes."""
    words = [_program(program), "watch", "--wait"]
    words += ["--mode", "act", "--policy", str(policy.absolute())] if policy else []
    return words + _where(invocation)


def _finish(invocation: Invocation, form: str, text: str) -> None:
    from brctl.view.notices.page import Page

    invocation.finish(Page("Schedule", {"form": form, "text": text}, text.rstrip("\n")))
