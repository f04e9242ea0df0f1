"""`report ettr`: where the time of a job went, as known now and as it was known then."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from brctl.engine.controller.wiring import Controller
from brctl.engine.job.time_records import TimeRecords, gather_records
from brctl.evidence.job.expected_ettr import expected, expected_mttf_us, levers
from brctl.evidence.job.time_books import (
    account,
    booked,
    costs,
    known_otherwise,
    usual_step_us,
)
from brctl.model.errors import UnavailableError
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_time import DAY_US, HOUR_US, US, BookedSpan, EttrReport, JobTime

POINTS = 48
"""Points of both curves, over the whole time; each is accounted as known now and then."""


async def ettr_report(controller: Controller, job: Job, back: timedelta) -> EttrReport:
    """The accounts of a job.

    Raises:
        UnavailableError: No step of it is known.
    """
    records = await gather_records(controller, job, controller.now() - back)
    if not records.steps:
        why = "; ".join(records.notes) or "its step file is empty"
        raise UnavailableError(
            f"no step of {job.name} is known: {why}",
            hint="jobs write steps.ndjson with brctl.training.progress",
        )
    until_us = round(controller.now().timestamp() * US)
    return report_of(job.name, records, until_us, len(job.nodes))


def report_of(job: str, records: TimeRecords, until_us: int, nodes: int = 0) -> EttrReport:
    """The report of what was recorded."""
    spans = booked(records.began_us, until_us, records.steps, records.incidents)
    whole = account(spans, records.began_us, until_us)
    found = costs(spans, records.incidents)
    hours: list[tuple[int, float, float]] = []
    cumulative: list[tuple[int, float, float]] = []
    otherwise = known_otherwise(records.steps, records.incidents)
    for number in range(1, POINTS + 1):
        at_us = records.began_us + whole.wall_us * number // POINTS
        known_then = None
        if otherwise(at_us):
            known_then = booked(records.began_us, at_us, records.steps, records.incidents)
        for rows, from_us in ((hours, at_us - HOUR_US), (cumulative, records.began_us)):
            window = max(records.began_us, from_us), at_us
            now = account(spans, *window).ettr or 0.0
            then = now if known_then is None else account(known_then, *window).ettr or 0.0
            rows.append((at_us, now, then))
    return EttrReport(
        job,
        whole,
        usual_step_us(records.steps),
        tuple(hours),
        tuple(cumulative),
        tuple(_days(spans, records.began_us, until_us)),
        found,
        expected(whole, found),
        levers(whole, found),
        whole.wall_us // len(found) if found else None,
        expected_mttf_us(nodes),
        nodes,
        records.notes,
        records.unread,
    )


def _days(spans: Sequence[BookedSpan], from_us: int, to_us: int) -> Iterator[JobTime]:
    while from_us < to_us:
        next_us = min(to_us, (from_us // DAY_US + 1) * DAY_US)
        yield account(spans, from_us, next_us)
        from_us = next_us
