"""A job as its nodes and its scheduler know it: each sees what the other cannot."""

from collections.abc import Iterable
from typing import Protocol

from brctl.evidence.job.status import read_job, with_scheduler
from brctl.model.errors import BrctlError
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import JobRunState, SchedulerReason
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import NodeReport


class Scheduler(Protocol):
    """Who knows of a job beside its nodes."""

    @property
    def name(self) -> str: ...

    async def scheduler_view(self, job: Job) -> JobRunState | None: ...


async def read_ranks(scheduler: Scheduler, job: Job, reports: Iterable[NodeReport]) -> JobStatus:
    """What the reports of a job's nodes say of it, and what its scheduler adds."""
    return with_scheduler(read_job(job, reports), await scheduler_says(scheduler, job))


async def scheduler_says(scheduler: Scheduler, job: Job) -> JobRunState | None:
    """A scheduler that does not answer is said aloud, and is no obstacle to what nodes say."""
    try:
        return await scheduler.scheduler_view(job)
    except BrctlError as error:
        silent = SchedulerReason("", (), "NoAnswer", str(error), scheduler.name)
        return JobRunState((), (), frozenset(), {}, {}, reasons=(silent,))
