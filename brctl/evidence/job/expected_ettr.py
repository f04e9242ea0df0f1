"""The share of time that a job should be productive, by what it measured of itself."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from brctl.model.jobs.job_time import US, IncidentCost, JobTime
from brctl.model.simulation import Book


def closed_form(stops: float, start_s: float, interval_s: float, write_s: float = 0.0) -> float:
    """The share of time that is productive by Meta's closed form (arXiv 2410.21680).

    Args:
        stops: A second.
        start_s: From a stop to the first new step.
        interval_s: Between two saves.
        write_s: What a save blocks.

    Examples:
        >>> round(closed_form(2000 * 6.5e-3 / 86400, 300, 3600), 3)
        0.684
    """
    return (1 - stops * (start_s + interval_s / 2)) / (1 + write_s / interval_s)


def expected(time: JobTime, incidents: Sequence[IncidentCost]) -> float | None:
    """The share by the measured rate and times; None where nothing stopped it."""
    measured = _measured(time, incidents)
    return None if measured is None else closed_form(*measured)


def levers(time: JobTime, incidents: Sequence[IncidentCost]) -> Mapping[str, float]:
    """The share with each of the two things halved that a site can change."""
    measured = _measured(time, incidents)
    if measured is None:
        return {}
    stops, start_s, interval_s = measured
    return {
        "half the recovery time": closed_form(stops, start_s / 2, interval_s),
        "half the time between checkpoints": closed_form(stops, start_s, interval_s / 2),
    }


def _measured(
    time: JobTime, incidents: Sequence[IncidentCost]
) -> tuple[float, float, float] | None:
    """Stops a second, seconds to the first new step, seconds between saves: twice what is lost."""
    if not incidents or not time.wall_us:
        return None
    redone_s = fmean(cost.books_us.get(Book.REDO, 0) for cost in incidents) / US
    start_s = fmean(cost.lost_us for cost in incidents) / US - redone_s
    return len(incidents) / (time.wall_us / US), start_s, max(2 * redone_s, 1e-6)
