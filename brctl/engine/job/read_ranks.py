"""A job as its nodes and its scheduler know it: each sees what the other cannot."""

from collections.abc import Iterable

from brctl.backends.contract import Backend
from brctl.evidence.job.status import read_job, with_scheduler
from brctl.model.errors import BrctlError
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import JobRunState, SchedulerReason
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import NodeReport


async def read_ranks(backend: Backend, job: Job, reports: Iterable[NodeReport]) -> JobStatus:
    """What the reports of a job's nodes say of it, and what its scheduler adds."""
    return with_scheduler(read_job(job, reports), await _known(backend, job))


async def _known(backend: Backend, job: Job) -> JobRunState | None:
    """A scheduler that does not answer is said aloud, and is no obstacle to what nodes say."""
    try:
        return await backend.scheduler_view(job)
    except BrctlError as error:
        silent = SchedulerReason("", (), "NoAnswer", str(error), backend.name)
        return JobRunState((), (), frozenset(), {}, {}, reasons=(silent,))
