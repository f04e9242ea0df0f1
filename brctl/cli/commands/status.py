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
    from brctl.engine.job.look_store import last_look
    from brctl.engine.runs.open_runs import open_runs
    from brctl.engine.sweeps.survey import survey
    from brctl.view.fleet.status import KnownJob, Status, status_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()

    async def run() -> Status:
        state_dir, context = settings.state_dir, settings.context
        async with open_controller(settings) as controller:
            names = await select_nodes(controller, invocation.nodes, invocation.exclude)
            known = await survey(controller, names)
            jobs = [
                KnownJob(job.name, len(job.nodes), last_look(state_dir, context, job.name))
                for job in controller.jobs.values()
            ]
            at = controller.now()
        verdicts = [stored.verdict for stored in open_verdicts(state_dir)]
        runs = open_runs(state_dir)
        return Status(known_lines(known), jobs, verdicts, runs, known.age_s, at)

    invocation.finish(status_page(settings.context, asyncio.run(run())), settings.context)
