"""Bare `brctl`: one screen with fleet, jobs, open verdicts and runs, and the next command."""

import asyncio

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.survey_lines import known_lines

app = new_app()


@app.command()
def status(ctx: typer.Context) -> None:
    """Show what is known; no node is asked."""
    from brctl.engine.controller.selection import select_nodes
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.incidents.verdict_store import open_verdicts
    from brctl.engine.runs.open_runs import open_runs
    from brctl.engine.sweeps.survey import survey
    from brctl.view.fleet.nodes import status_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()

    async def run() -> None:
        async with open_controller(settings) as controller:
            names = await select_nodes(controller, invocation.nodes, invocation.exclude)
            known = await survey(controller, names)
            runs = open_runs(settings.state_dir, controller.now())
            jobs = {job.name: len(job.nodes) for job in controller.jobs.values()}
        verdicts = [stored.verdict for stored in open_verdicts(settings.state_dir)]
        page = status_page(settings.context, known_lines(known), jobs, verdicts, runs, known.age_s)
        invocation.finish(page, settings.context)

    asyncio.run(run())
