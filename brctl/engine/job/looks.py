"""Look at a job as cron does: what its ranks say, and whether brctl itself stopped it."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from brctl.engine.controller.wiring import Controller
from brctl.engine.job.look_store import keep_look, last_look
from brctl.engine.job.read_ranks import read_ranks
from brctl.engine.job.stacks import ask_ranks
from brctl.engine.runs.open_runs import open_runs
from brctl.engine.runs.read_run import sound_runs
from brctl.evidence.job.status import compared
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_look import JobLook, JobState
from brctl.model.jobs.job_status import JobStatus
from brctl.model.nodeset import fold
from brctl.model.runs.result import RunState

_CLOCKS_APART = timedelta(minutes=5)
"""The newest step is of a node's clock, the end of a run of this machine's (own)."""

_STATES = {True: JobState.STALLED, False: JobState.PROGRESSING, None: JobState.UNKNOWN}


async def ask_job(controller: Controller, job: Job, before: JobLook | None) -> JobStatus:
    """What the ranks of a job say now; one question a node, as light as a login."""
    reports = await ask_ranks(controller, job)
    return beside_last_look(controller, await read_ranks(controller.backend, job, reports), before)


def look_before(controller: Controller, job: Job) -> JobLook | None:
    """The look at a job that was kept last in this context."""
    return last_look(controller.state_dir, controller.settings.context, job.name)


def beside_last_look(
    controller: Controller, status: JobStatus, before: JobLook | None
) -> JobStatus:
    """A job whose log carries no times, with what the look before tells of its newest step."""
    if before is None:
        return status
    seen_at = before.step_seen_at if status.step == before.step else None
    since = controller.now() - (seen_at or before.at)
    return compared(status, before.step, since.total_seconds())


def keep_fresh_look(controller: Controller, status: JobStatus) -> None:
    """Remember what was seen of a job, in place of the look before."""
    look = fresh_look(controller, status, look_before(controller, status.job))
    keep_look(controller.state_dir, controller.settings.context, look)


def fresh_look(controller: Controller, status: JobStatus, before: JobLook | None) -> JobLook:
    """A look at a job as it is kept: with what the one before knows of the same trouble.

    A job that takes no steps because brctl stopped it, or is at work on it, is in no trouble.
    """
    look = _look_of(status, controller.now())
    if look.in_trouble:
        run = stopped_by(controller.state_dir, look.job, _before_newest_step(look))
        look = replace(look, state=JobState.STOPPED, because=run) if run else look
    if before is not None and before.step == look.step:
        look = replace(look, step_seen_at=before.step_seen_at or before.at)
    if before is not None and look.is_the_trouble_of(before):
        return replace(look, verdict_id=before.verdict_id, told=before.told)
    if before is not None and not look.in_trouble:
        # Cron told of a trouble and has to tell its end, whoever saw that first.
        return replace(look, told=before.told)
    return look


def _look_of(status: JobStatus, at: datetime) -> JobLook:
    """What its ranks say, whatever anybody did to it."""
    return JobLook(
        job=status.job.name,
        at=at,
        state=JobState.ENDED if status.ended else _STATES[status.stalled],
        step=status.step,
        progress_age_s=status.progress_age_s,
        step_s=status.history.step_s,
        usual_step_s=status.history.usual_step_s,
        step_seen_at=at,
        because=f"no answer from {fold(status.silent)}" if status.silent else "",
    )


def _before_newest_step(look: JobLook) -> datetime | None:
    """A moment before the job's newest step: a run that was over by then has not stopped it."""
    if look.progress_age_s is None:
        return None
    return look.at - timedelta(seconds=look.progress_age_s) - _CLOCKS_APART


def stopped_by(state_dir: Path, job: str, since: datetime | None = None) -> str:
    """The run that is at work on a job, or stopped it and did not start it again; "" for none.

    With `since` runs that were over by then are not even opened: a site keeps thousands.
    """
    working = [run.name for run in open_runs(state_dir) if run.job == job and run.alive]
    if working:
        return f"{working[-1]} is at work on it"
    for run in reversed(sound_runs(state_dir, since)):
        verbs = {step.uses for step in run.playbook.steps} & {"job.stop", "job.restart"}
        if run.job == job and run.state is RunState.OK and verbs:
            stops = "job.restart" not in verbs
            return f"{run.name} ({run.playbook.name}) stopped it" if stops else ""
    return ""
