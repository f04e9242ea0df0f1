"""`brctl report incidents`: what stopped a job, and how long each part of the way back took."""

from collections.abc import Iterator, Mapping
from statistics import median

from brctl.model.jobs.job_time import US, EttrReport, IncidentCost, moment_of
from brctl.model.nodeset import fold
from brctl.model.simulation import Book
from brctl.model.units import describe_duration, rfc3339, utc_text
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable

PHASES: Mapping[str, Book] = {
    "detect": Book.DETECT,
    "locate": Book.LOCATE,
    "wait_human": Book.WAIT_HUMAN,
    "fail_over": Book.START,
    "load": Book.LOAD,
    "redone": Book.REDO,
}


def incidents_page(report: EttrReport) -> Page:
    """The incidents of a job's report, oldest first."""
    rows = tuple(_row(cost) for cost in report.incidents)
    body = {
        "job": report.job,
        "from_at": rfc3339(moment_of(report.now.from_us)),
        "to_at": rfc3339(moment_of(report.now.to_us)),
        "incidents": list(rows),
        "median_seconds": {phase: median_seconds(report.incidents, phase) for phase in PHASES},
        "notes": list(report.notes),
    }
    standing = tuple(cost.incident.name for cost in report.incidents if cost.stands)
    names = tuple(cost.incident.name for cost in report.incidents)
    return Page(
        "Incidents", body, "\n".join(_lines(report)), names=names, rows=rows,
        next=tuple(f"brctl incident show {name}" for name in standing if name),
    )  # fmt: skip


def _seconds(cost: IncidentCost, phase: str) -> float | None:
    """What a phase took; None where no record divides it from the next one."""
    moments = cost.incident
    undated = {
        "detect": moments.suspected_us is None and moments.verdict_us is None,
        "locate": moments.suspected_us is None,
        "load": moments.started_us is None,
    }
    return None if undated.get(phase) else cost.books_us.get(PHASES[phase], 0) / US


def _row(cost: IncidentCost) -> dict[str, Json]:
    return {
        "verdict": cost.incident.name or None,
        "cause": cost.incident.cause,
        "nodes": list(cost.incident.nodes),
        "at": rfc3339(moment_of(cost.began_us)),
        **{f"{phase}_seconds": _seconds(cost, phase) for phase in PHASES},
        "lost_seconds": cost.lost_us / US,
        "run": cost.incident.run or None,
        "stands": cost.stands,
    }


def median_seconds(costs: tuple[IncidentCost, ...], phase: str) -> float | None:
    """What a phase took in the middle; None where no incident tells."""
    found = [took for cost in costs if (took := _seconds(cost, phase)) is not None]
    return median(found) if found else None


def _lines(report: EttrReport) -> Iterator[str]:
    since = f"since {utc_text(moment_of(report.now.from_us))}"
    if not report.incidents:
        yield f"{printable(report.job)}  no incident {since}"
    else:
        head = [name.replace("_", "-").upper() for name in PHASES]
        yield columns([("INCIDENT", "CAUSE", "NODES", "AT", *head, "LOST", "RUN"),
                       *map(_cells, report.incidents), _middle(report)])  # fmt: skip
    yield from (f"unseen: {printable(note, 200)}" for note in report.notes)


def _cells(cost: IncidentCost) -> tuple[str, ...]:
    incident = cost.incident
    phases = (_took(_seconds(cost, phase)) for phase in PHASES)
    return (
        incident.name or "-", incident.cause, fold(incident.nodes) or "-",
        utc_text(moment_of(cost.began_us)), *phases, _took(cost.lost_us / US),
        "stands" if cost.stands else incident.run or "-",
    )  # fmt: skip


def _middle(report: EttrReport) -> tuple[str, ...]:
    phases = (_took(median_seconds(report.incidents, phase)) for phase in PHASES)
    return ("median", "", "", "", *phases, "", "")


def _took(seconds: float | None) -> str:
    return "-" if seconds is None else describe_duration(seconds)
