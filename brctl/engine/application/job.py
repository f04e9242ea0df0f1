"""A job by name: where it runs, what its ranks say, and the wait until they go on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from brctl.actions.context import RunContext
from brctl.engine.application.runs import open_context
from brctl.engine.controller.wiring import open_controller
from brctl.engine.incidents.notify_runs import Say
from brctl.library.config import Settings
from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus

WATCH_INTERVAL_S = 2.0


async def job_name(settings: Settings, name: str | None) -> str:
    """A declared job; without a name the only one."""
    async with open_controller(settings) as controller:
        return controller.job(name).name


async def job_progress(settings: Settings, name: str | None, say: Say) -> tuple[Job, JobStatus]:
    """Where a job runs and what its ranks say."""
    async with _job_open(settings, name, say) as (context, job):
        return job, await context.jobs.progress(job)


async def wait_for_steps(
    settings: Settings, name: str | None, wanted: int, limit_s: float, say: Say
) -> tuple[Job, JobStatus, ExitCode]:
    """Look until enough new steps came (OK), a rank ended badly (CRITICAL), or time is up."""
    async with _job_open(settings, name, say) as (context, job):
        started, first = context.clock.now(), None
        while True:
            status = await context.jobs.progress(job)
            first = status.step if first is None else first
            if first is not None and status.step is not None and status.step >= first + wanted:
                return job, status, ExitCode.OK
            if any(view.exit_status not in (None, 0) for view in status.ranks):
                return job, status, ExitCode.CRITICAL
            if (context.clock.now() - started).total_seconds() >= limit_s:
                return job, status, ExitCode.UNKNOWN
            await context.clock.pause(WATCH_INTERVAL_S)


@asynccontextmanager
async def _job_open(
    settings: Settings, name: str | None, say: Say
) -> AsyncIterator[tuple[RunContext, Job]]:
    chosen = await job_name(settings, name)
    async with open_context(settings, say) as context:
        yield context, await context.jobs.get(chosen)
