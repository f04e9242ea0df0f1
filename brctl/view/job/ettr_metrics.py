"""A job's time as metrics, for the text collector of the node exporter."""

from collections.abc import Iterator, Mapping

from brctl.evidence.job.time_books import lost_by_cause
from brctl.model.jobs.job_time import US, EttrReport
from brctl.view.fleet.prometheus import Sample, series_of
from brctl.view.job.incidents import PHASES, median_seconds


def ettr_totals(report: EttrReport, context: str) -> Mapping[str, float]:
    """Its series; what nobody recorded is left out, because a zero would be a lie."""
    here = {"context": context, "job": report.job}
    return {series_of(name, {**here, **own}): value for name, own, value in _samples(report)}


def _samples(report: EttrReport) -> Iterator[Sample]:
    shares = [("all", report.now.ettr), *(("hour", now) for _, now, _ in report.hours[-1:])]
    yield "brctl_job_records_unread", {}, int(report.unread)
    for window, share in shares:
        if share is not None and not report.unread:
            yield "brctl_job_ettr_ratio", {"window": window}, round(share, 6)
    for book, us in report.now.books_us.items():
        yield "brctl_job_time_seconds", {"book": book.value}, us / US
    for cause, us in lost_by_cause(report.incidents).items():
        yield "brctl_job_lost_seconds", {"cause": cause}, us / US
    yield "brctl_job_incidents", {}, len(report.incidents)
    for phase in PHASES:
        middle_s = median_seconds(report.incidents, phase)
        if middle_s is not None:
            yield "brctl_job_incident_seconds", {"phase": phase}, round(middle_s, 3)
    if report.mttf_us is not None:
        yield "brctl_job_mttf_seconds", {}, report.mttf_us / US
