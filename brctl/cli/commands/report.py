"""`brctl report`: what many sweeps, nodes, verdicts and steps say together."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.typed import typed

if TYPE_CHECKING:
    from collections.abc import Callable

    from brctl.model.jobs.job_time import EttrReport
    from brctl.view.notices.page import Page

app = new_app()


@app.callback()
def report() -> None:
    """Reports over the sweeps and verdicts that are kept."""


@app.command()
def flappers(
    ctx: typer.Context,
    since: Annotated[str, typer.Option("--since", help="7d")] = "7d",
    least: Annotated[int, typer.Option("--least", min=2, help="began to fail so often")] = 3,
) -> None:
    """List checks that come and go; exit 3 when no sweep was recorded."""
    asyncio.run(_flappers(ctx.obj, since, least))


async def _flappers(invocation: Invocation, since: str, least: int) -> None:
    from brctl.engine.controller.selection import select_nodes
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.sweeps.history import SweepHistory
    from brctl.model.units import parse_duration_s
    from brctl.view.fleet.flappers import flappers_page

    back = timedelta(seconds=typed("--since", since, parse_duration_s))
    settings = invocation.settings()
    async with open_controller(settings) as controller:
        chosen = set(await select_nodes(controller, invocation.nodes, invocation.exclude))
        history, since_at = SweepHistory(controller.state_dir), controller.now() - back
        found = [row for row in history.flappers(since_at, least) if row[0] in chosen]
        sweeps = history.sweeps_since(since_at)
    invocation.finish(flappers_page(found, sweeps, since), settings.context)


@app.command()
def lemons(
    ctx: typer.Context,
    since: Annotated[str, typer.Option("--since", help="28d")] = "28d",
) -> None:
    """Propose nodes that fail again and again, with evidence; exit 3 when nothing was recorded."""
    asyncio.run(_lemons(ctx.obj, since))


async def _lemons(invocation: Invocation, since: str) -> None:
    from brctl.engine.controller.selection import select_nodes
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.incidents.node_past import lemon_report
    from brctl.model.units import parse_duration_s
    from brctl.view.fleet.lemons import lemons_page

    back = timedelta(seconds=typed("--since", since, parse_duration_s))
    settings = invocation.settings()
    async with open_controller(settings) as controller:
        chosen = await select_nodes(controller, invocation.nodes, invocation.exclude)
        found = lemon_report(controller, chosen, back)
    looked_through = (found.sweeps, found.verdicts, found.runs)
    invocation.finish(
        lemons_page(found.pasts, found.nodes, looked_through, since), settings.context
    )


@app.command()
def calibration(ctx: typer.Context) -> None:
    """Say how often verdicts people confirmed or dismissed were right; exit 3 when none was."""
    from brctl.engine.incidents.verdict_store import VerdictState, load_all
    from brctl.verdict.calibration import reliability
    from brctl.view.calibration import calibration_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    stored = load_all(settings.state_dir)
    judged = (VerdictState.CONFIRMED, VerdictState.DISMISSED)
    held = [
        (one.verdict.probability, one.state is VerdictState.CONFIRMED)
        for one in stored
        if one.state in judged
    ]
    invocation.finish(calibration_page(reliability(held), len(stored)), settings.context)


@app.command()
def fleet(
    ctx: typer.Context,
    since: Annotated[str, typer.Option("--since", help="flappers of the last 7d")] = "7d",
) -> None:
    """Say all nodes' states, hardware, versions, silent ones and flappers; exit 3 unswept."""
    asyncio.run(_fleet(ctx.obj, since))


async def _fleet(invocation: Invocation, since: str) -> None:
    from brctl.cli.survey_lines import known_lines
    from brctl.engine.controller.selection import select_nodes
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.sweeps.fleet_report import fleet_facts
    from brctl.engine.sweeps.survey import survey
    from brctl.model.units import parse_duration_s
    from brctl.view.fleet.report import fleet_page

    back = timedelta(seconds=typed("--since", since, parse_duration_s))
    settings = invocation.settings()
    async with open_controller(settings) as controller:
        names = await select_nodes(controller, invocation.nodes, invocation.exclude)
        known = await survey(controller, names)
        facts = fleet_facts(controller, known, back)
        page = fleet_page(known_lines(known), facts, known.age_s, controller.now(), since)
    invocation.finish(page, settings.context)


@app.command()
def ettr(
    ctx: typer.Context,
    job: Annotated[str | None, typer.Option("--job", help="default the only one")] = None,
    since: Annotated[str, typer.Option("--since", help="7d")] = "30d",
    prom: Annotated[Path | None, typer.Option("--prom", help="metrics file, atomic")] = None,
) -> None:
    """Account a job's time to the last second: productive, lost to what, and what would help."""
    from brctl.view.job.ettr import ettr_page

    asyncio.run(_of_time(ctx.obj, job, since, ettr_page, prom))


@app.command()
def incidents(
    ctx: typer.Context,
    job: Annotated[str | None, typer.Option("--job", help="default the only one")] = None,
    since: Annotated[str, typer.Option("--since", help="7d")] = "30d",
) -> None:
    """List what stopped a job: seconds to detect, locate, fail over, and of steps redone."""
    from brctl.view.job.incidents import incidents_page

    asyncio.run(_of_time(ctx.obj, job, since, incidents_page))


async def _of_time(
    invocation: Invocation,
    name: str | None,
    since: str,
    page: "Callable[[EttrReport], Page]",
    prom: Path | None = None,
) -> None:
    from brctl.engine.application.job_time import ettr_report
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.sweeps.cycle import write_metrics
    from brctl.model.units import parse_duration_s
    from brctl.view.fleet.prometheus import totals_text
    from brctl.view.job.ettr_metrics import ettr_totals

    back = timedelta(seconds=typed("--since", since, parse_duration_s))
    settings = invocation.settings()
    async with open_controller(settings) as controller:
        report = await ettr_report(controller, controller.job(name), back)
    if prom is not None:
        write_metrics(prom, totals_text(ettr_totals(report, settings.context)))
    invocation.finish(page(report), settings.context)
