"""Cron's look at the jobs: a stall is diagnosed and paged once, and closed when steps go on."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, replace

from brctl.engine.application.diagnose import DiagnosisScope, diagnose
from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents.notify_runs import (
    Say,
    beside_the_work,
    complain,
    notify_progress,
    sure,
)
from brctl.engine.incidents.notify_verdicts import notifier_of
from brctl.engine.job.diagnose import Diagnosis
from brctl.engine.job.look_store import keep_look
from brctl.engine.job.looks import ask_job, fresh_look, look_before
from brctl.engine.sweeps.trend_store import TrendStore
from brctl.evidence.trends import StepMark, job_samples
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_look import JobLook, JobState
from brctl.model.jobs.job_status import JobStatus
from brctl.model.verdict import Verdict
from brctl.view.notices.notice import verdict_notice


@dataclass(frozen=True, slots=True)
class JobNews:
    """A look at a job beside the one before.

    Attributes:
        before: None at the first look.
        verdicts: What a new stall was found to be.
    """

    look: JobLook
    before: JobLook | None
    verdicts: tuple[Verdict, ...] = ()


async def look_at_jobs(
    controller: Controller, names: Collection[str], say: Say
) -> tuple[JobNews, ...]:
    """Look at every job that has one of these nodes; each look is kept for the next one."""
    jobs = [job for job in controller.jobs.values() if set(job.nodes) & set(names)]
    return tuple(await asyncio.gather(*(_news(controller, job, say) for job in jobs)))


async def _news(controller: Controller, job: Job, say: Say) -> JobNews:
    before = look_before(controller, job)
    status = await ask_job(controller, job, before)
    news = JobNews(fresh_look(controller, status, before), before)
    if news.look.state is JobState.STALLED and not news.look.told:
        news = await _examined(controller, job, news, say)
    elif news.look.state is JobState.PROGRESSING:
        await _close_pages(controller, status, say)
    news = replace(news, look=replace(news.look, told=news.look.in_trouble))
    keep_look(controller.state_dir, controller.settings.context, news.look)
    _keep_trends(controller, status, before)
    return news


def _keep_trends(controller: Controller, status: JobStatus, before: JobLook | None) -> None:
    earlier = None
    if before is not None and before.step is not None:
        earlier = StepMark(before.step, before.at.timestamp())
    now = controller.now()
    store = TrendStore(controller.state_dir, controller.settings.context)
    store.add(now, job_samples(status, earlier, now.timestamp()))


async def _examined(controller: Controller, job: Job, news: JobNews, say: Say) -> JobNews:
    """A job found standing still is diagnosed as by `dx`; a passing pause is none."""
    found = await diagnose(controller, DiagnosisScope(job, job.nodes), say)
    if found.status is None:
        return news
    look = fresh_look(controller, found.status, news.before)
    if look.state is not JobState.STALLED:
        return replace(news, look=look)
    await _page(controller, found, say)
    verdict_id = found.verdicts[0].id if found.verdicts else ""
    return JobNews(replace(look, verdict_id=verdict_id), news.before, found.verdicts)


async def _page(controller: Controller, found: Diagnosis, say: Say) -> None:
    """Sure verdicts were told by the diagnosis; a job that stands wakes somebody without one."""
    notifier, likeliest = notifier_of(controller), next(iter(found.verdicts), None)
    if not notifier.configured or likeliest is None or sure(found.verdicts):
        return
    at, context = controller.now(), controller.settings.context
    with beside_the_work(say):
        notice = verdict_notice(likeliest, context, at, runbook=notifier.settings.runbook)
        complain(await notifier.notify_async(notice), say)


async def _close_pages(controller: Controller, status: JobStatus, say: Say) -> None:
    notifier, context = notifier_of(controller), controller.settings.context
    if notifier.configured:
        with beside_the_work(say):
            await notify_progress(notifier, context, status, controller.now(), say)
