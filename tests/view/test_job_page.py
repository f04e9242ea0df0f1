"""`job show`: what the job's scheduler says stands below what its ranks say."""

from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_run_state import SchedulerReason
from brctl.model.jobs.job_status import JobStatus
from brctl.view.job.job import job_page
from tests.fakes.documents import check_page

QUOTA = SchedulerReason("", (), "KueueNotAdmitted", "queue train: no quota", "Job llm")
KILLED = SchedulerReason("n2", (1,), "OOMKilled", "\x1b[31m", "pod llm-1")


def test_reasons_of_the_scheduler_are_shown_one_a_line_and_escaped() -> None:
    """Of the whole job, of a node, of ranks; a job without any has no line more."""
    job = example_job()
    page = job_page(job, JobStatus(job, (), None, None, None, (), reasons=(QUOTA, KILLED)))
    check_page(page, "lab")
    lines = page.text.splitlines()
    assert lines[-2] == "Job llm: KueueNotAdmitted: queue train: no quota"
    assert lines[-1].startswith("pod llm-1 (rank 1): OOMKilled: ")
    assert "\x1b" not in page.text
    silent = job_page(job, JobStatus(job, (), None, None, None, ()))
    assert len(silent.text.splitlines()) == len(lines) - 2
