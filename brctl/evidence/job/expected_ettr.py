"""The share of time that a job should be productive, by what it measured of itself."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from brctl.model.jobs.job_time import US, IncidentCost, JobTime
from brctl.model.simulation import Book

NODE_FAULTS_A_DAY: Mapping[str, float] = {"RSC-1": 6.5e-3, "Llama 3": 3.8e-3, "RSC-2": 2.34e-3}
"""Published faults of a node and day (arXiv 2410.21680; 2407.21783, of its 54 days)."""

DAY_S = 86_400


def expected_mttf_us(nodes: int) -> Mapping[str, int]:
    """Time between two interruptions of a job on so many nodes, by whose rate.

    Examples:
        >>> expected_mttf_us(1024)["RSC-1"] // US // 60
        216
    """
    rates = NODE_FAULTS_A_DAY.items() if nodes else ()
    return {fleet: round(DAY_S / (nodes * rate) * US) for fleet, rate in rates}


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
