"""Job health over time as people read it: a line a number, of nodes those that stand out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from brctl.model.jobs.job import Job
from brctl.model.jobs.trends import TREND_METRICS, TrendMetric, Trends, TrendSeries
from brctl.model.nodeset import fold
from brctl.model.units import describe_duration, rfc3339
from brctl.view.notices.page import Json
from brctl.view.sparkline import MISSING, sparkline
from brctl.view.text import columns, printable

NODES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class TrendLine:
    """One number over time.

    Attributes:
        about: The node, and how many more have this number; "" for the job itself.
    """

    title: str
    now: str
    lowest: str
    highest: str
    about: str
    line: str

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.title, self.now, self.lowest, self.highest, self.about or "-", self.line)


def trend_lines(job: Job, trends: Trends, width: int) -> tuple[TrendLine, ...]:
    """Every number that is known of a job and of its nodes."""
    found: list[TrendLine] = []
    skipped = _unknown_at_first(trends.series)
    for name, metric in TREND_METRICS.items():
        wanted = set(job.nodes) if metric.of_node else {job.name}
        of_it = [s for s in trends.series if s.metric == name and s.subject in wanted]
        known = sorted((s for s in of_it if _known(s)), key=lambda s: _rank(s, metric))
        for number, series in enumerate(known[:NODES_SHOWN]):
            found.append(_line(series, metric, len(known), number, width, skipped))
    return tuple(found)


def trend_heads(trends: Trends, width: int) -> tuple[str, ...]:
    """The titles of the columns; the last says how long a character is."""
    span = trends.every_s * min(trends.buckets - _unknown_at_first(trends.series), width)
    every = describe_duration(trends.every_s)
    what = f"LAST {describe_duration(span)}, {every} A CHARACTER, {MISSING} UNKNOWN"
    return ("HEALTH", "NOW", "LOW", "HIGH", "NODE", what)


def trend_notes(job: Job, trends: Trends) -> tuple[str, ...]:
    """What is not known, and why; silence is no health."""
    if trends.problem:
        return (f"health over time: UNKNOWN: {printable(trends.problem)}",)
    known = {(s.metric, s.subject) for s in trends.series if _known(s)}
    if not known:
        return (
            "health over time: UNKNOWN: nothing is kept yet; `brctl watch` and `brctl sweep --cron`"
            " keep it",
        )
    of_job = [
        m.title for n, m in TREND_METRICS.items() if not m.of_node and (n, job.name) not in known
    ]
    notes = [f"not told: {', '.join(of_job)}"] if of_job else []
    missing: dict[str, list[str]] = {}
    for name, metric in TREND_METRICS.items():
        unknown = [node for node in job.nodes if metric.of_node and (name, node) not in known]
        if unknown:
            missing.setdefault(fold(unknown), []).append(metric.title)
    notes += [f"not measured on {nodes}: {', '.join(titles)}" for nodes, titles in missing.items()]
    return tuple(notes)


def trends_text(job: Job, trends: Trends, width: int = 60) -> list[str]:
    """The lines of `job show`."""
    lines = trend_lines(job, trends, width)
    table = (
        [columns([trend_heads(trends, width), *(line.cells for line in lines)])] if lines else []
    )
    return [*table, *trend_notes(job, trends)]


def trends_document(job: Job, trends: Trends) -> dict[str, Json]:
    """The job's own numbers in full, of each node the newest and the range."""
    return {
        "every_seconds": trends.every_s,
        "until": rfc3339(trends.until) if trends.until else None,
        "problem": trends.problem or None,
        "job": {s.metric: list(s.shown) for s in trends.series if s.subject == job.name},
        "nodes": [_node_row(s) for s in trends.series if s.subject in job.nodes],
    }


def _node_row(series: TrendSeries) -> dict[str, Json]:
    known = _numbers(series)
    return {
        "node": series.subject,
        "metric": series.metric,
        "newest": series.shown[-1] if series.shown else None,
        "lowest": min(known, default=None),
        "highest": max(known, default=None),
        "sum": sum(known) if known and TREND_METRICS[series.metric].counts else None,
    }


def _line(
    series: TrendSeries, metric: TrendMetric, known: int, number: int, width: int, skipped: int
) -> TrendLine:
    shown, numbers = series.shown[skipped:], _numbers(series)
    now = f"+{_number(sum(numbers))}" if metric.counts else _now(shown, metric.unit)
    about = printable(series.subject, 40) if metric.of_node else ""
    if metric.of_node and number == min(known, NODES_SHOWN) - 1 and known > NODES_SHOWN:
        about += f" (of {known})"
    return TrendLine(
        metric.title if number == 0 else "", now, _number(min(numbers)), _number(max(numbers)),
        about, sparkline(shown, width),
    )  # fmt: skip


def _now(shown: Sequence[float | None], unit: str) -> str:
    """The newest bucket, or the one before: not all of its looks may have come yet."""
    newest = next((value for value in reversed(shown[-2:]) if value is not None), None)
    return "-" if newest is None else f"{_number(newest)} {unit}".rstrip()


def _number(value: float) -> str:
    """Three digits that count; of tokens a second all, in groups."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _rank(series: TrendSeries, metric: TrendMetric) -> tuple[float, str]:
    """The nodes that stand out first."""
    numbers = _numbers(series)
    worst = sum(numbers) if metric.counts else numbers[-1]
    return (worst if metric.low_first else -worst, series.subject)


def _known(series: TrendSeries) -> bool:
    return bool(_numbers(series))


def _numbers(series: TrendSeries) -> list[float]:
    return [value for value in series.shown if value is not None]


def _unknown_at_first(series: Iterable[TrendSeries]) -> int:
    """Buckets before anything was known: a job that began ten minutes ago has no hour behind it."""
    starts = [
        next(number for number, value in enumerate(one.shown) if value is not None)
        for one in series
        if _known(one)
    ]
    return min(starts, default=0)
