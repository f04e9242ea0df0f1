"""One parameter over its values: a table, a plot of bars, a line in a page."""

from collections.abc import Sequence

from brctl.model.exit_codes import ExitCode
from brctl.model.simulation import ParameterSweep, PolicyScore, SweepPoint
from brctl.view.notices.page import Json, Page
from brctl.view.simulation.comparison import (
    fleet_document,
    fleet_lines,
    percent,
    score_document,
)
from brctl.view.simulation.html import sweep_html
from brctl.view.text import columns, printable

_BAR = 20


def sweep_page(found: ParameterSweep) -> Page:
    """The answer of `brctl simulate --sweep NAME=A..B`; exit 3 when values are missing."""
    first = found.points[0].scores
    parts = [
        "\n".join(
            (*fleet_lines(found.fleet),
             f"{first[0].runs} runs of {found.fleet.days:g} days from seed {found.seed} a value,"
             " all on the same faults")
        ),
        *(_table(found, index) for index in range(len(first))),
        *(f"missing: {why}" for why in found.unfinished),
    ]  # fmt: skip
    rows = tuple(
        {found.parameter: point.value, **score_document(score)}
        for point in found.points
        for score in point.scores
    )
    body: dict[str, Json] = {
        "fleet": fleet_document(found.fleet),
        "seed": found.seed,
        "parameter": found.parameter,
        "points": [
            {"value": point.value, "policies": [score_document(s) for s in point.scores]}
            for point in found.points
        ],
        "unfinished": list(found.unfinished),
    }
    code = ExitCode.UNKNOWN if found.unfinished else ExitCode.OK
    return Page(
        "SimulationSweep", body, "\n\n".join(parts), code, table=rows, html=sweep_html(found)
    )


def _table(found: ParameterSweep, index: int) -> str:
    """One policy: ETTR with a bar between the least and the most, and what it does."""
    scores = [point.scores[index] for point in found.points]
    head = (found.parameter.upper(), "ETTR %", "SHORT", "HEALTHY OUT", "PAGES", "REFUSED", "")
    bars = _bars([score.ettr.mean for score in scores])
    rows = [
        (f"{point.value:g}", percent(score.ettr), *_counts(score), bar)
        for point, score, bar in zip(found.points, scores, bars, strict=True)
    ]
    tables = [
        columns([head, *rows]),
        columns([(found.parameter.upper(), *_ACTS), *(_acts(p, index) for p in found.points)]),
    ]
    return "\n".join((printable(scores[0].policy), *tables))


_ACTS = ("ACTS IN A RUN", "POOL RUNS DRY", "FIRST ON DAY")


def _acts(point: SweepPoint, index: int) -> Sequence[str]:
    """How often it acts, and when the pool runs dry, in the mean of the runs where it does."""
    score = point.scores[index]
    day = score.first_short_day
    return (
        f"{point.value:g}", f"{score.per_run['actions']:.2f}",
        f"in {100 * score.ran_dry_share:.0f} % of runs", "-" if day is None else f"{day:.0f}",
    )  # fmt: skip


def _counts(score: PolicyScore) -> Sequence[str]:
    names = ("shortfalls", "healthy_evicted", "pages", "refused")
    return [f"{score.per_run[name]:.2f}" for name in names]


def _bars(values: Sequence[float]) -> list[str]:
    """Bars from the least value to the most: it is the differences that matter."""
    least, most = min(values), max(values)
    span = most - least
    return ["#" * (1 + round((_BAR - 1) * ((value - least) / span if span else 1.0)))
            for value in values]  # fmt: skip
