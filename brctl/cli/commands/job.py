"""`brctl job show|start|stop|watch|update|updates`."""

import asyncio
from dataclasses import replace
from typing import Annotated

import typer

from brctl.actions.context import RunContext
from brctl.cli.invocation import Invocation, new_app
from brctl.cli.job_code import update, updates
from brctl.cli.output import say
from brctl.cli.running import Consent, finish_run, run_playbook
from brctl.engine.application.runs import find_playbook, open_context
from brctl.engine.controller.wiring import open_controller
from brctl.library.config import Settings
from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus
from brctl.model.runs.playbook import Json
from brctl.view.job.job import job_page

app = new_app()
app.command()(update)
app.command()(updates)

JobName = Annotated[str | None, typer.Argument(help="default the only one")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="agree; low risk only")]
Typed = Annotated[str | None, typer.Option("--confirm", help="what to type: stop")]
WATCH_INTERVAL_S = 2.0


@app.command()
def show(ctx: typer.Context, job: JobName = None) -> None:
    """Show where a job runs and what its ranks say; exit 0 progress, 2 stalled, 3 unknown."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()

    async def run() -> None:
        async with open_context(settings, say) as context:
            found = await _find(settings, context, job)
            status = await context.jobs.progress(found)
        invocation.finish(job_page(found, status), settings.context)

    asyncio.run(run())


async def _find(settings: Settings, context: RunContext, name: str | None) -> Job:
    async with open_controller(settings) as controller:
        return await context.jobs.get(controller.job(name).name)


@app.command()
def start(
    ctx: typer.Context,
    job: JobName = None,
    checkpoint: Annotated[str, typer.Option("--from", help="checkpoint directory")] = "",
) -> None:
    """Start the ranks of a job that does not run."""
    _act(ctx.obj, "start-job", job, {"checkpoint": checkpoint}, Consent(yes=True))


@app.command()
def stop(ctx: typer.Context, job: JobName = None, confirm: Typed = None, yes: Yes = False) -> None:
    """End every rank of a job; asks first."""
    _act(ctx.obj, "stop-job", job, {}, Consent(yes=yes, typed=confirm))


def _act(
    invocation: Invocation,
    playbook: str,
    name: str | None,
    values: dict[str, Json],
    consent: Consent,
) -> None:
    settings = invocation.settings()

    async def job_name() -> str:
        async with open_controller(settings) as controller:
            return controller.job(name).name

    chosen = find_playbook(settings.library_dirs, playbook)
    values["job"] = asyncio.run(job_name())
    run = asyncio.run(run_playbook(invocation, settings, chosen, values, None, consent))
    finish_run(invocation, settings, run)


@app.command()
def watch(
    ctx: typer.Context,
    job: JobName = None,
    until_progress: Annotated[int, typer.Option("--until-progress", help="new steps")] = 1,
) -> None:
    """Wait for new steps; exit 0 when they came, 2 when a rank ended, 3 on `--timeout` (10m)."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    limit_s = invocation.timeout_s or 600.0

    async def run() -> None:
        async with open_context(settings, say) as context:
            found = await _find(settings, context, job)
            code, status = await _wait(context, found, until_progress, limit_s)
        page = replace(job_page(found, status), exit_code=code)
        invocation.finish(page, settings.context)

    asyncio.run(run())


async def _wait(
    context: RunContext, job: Job, wanted: int, limit_s: float
) -> tuple[ExitCode, JobStatus]:
    """Look until enough new steps came, a rank ended badly, or time is up."""
    started, first = context.clock.now(), None
    while True:
        status = await context.jobs.progress(job)
        first = status.step if first is None else first
        if first is not None and status.step is not None and status.step >= first + wanted:
            return ExitCode.OK, status
        if any(view.exit_status not in (None, 0) for view in status.ranks):
            return ExitCode.CRITICAL, status
        if (context.clock.now() - started).total_seconds() >= limit_s:
            return ExitCode.UNKNOWN, status
        await context.clock.pause(WATCH_INTERVAL_S)
