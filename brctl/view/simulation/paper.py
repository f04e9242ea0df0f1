"""`brctl simulate paper`: a published figure, ours and the difference, a line each."""

from textwrap import wrap

from brctl.model.exit_codes import ExitCode
from brctl.model.simulation import PublishedFigure, PublishedTables
from brctl.view.notices.page import Json, Page
from brctl.view.simulation.comparison import WIDTH
from brctl.view.text import columns


def paper_page(found: PublishedTables) -> Page:
    """The answer; exit 1 when a figure lies outside of what is accepted."""
    tables = dict.fromkeys(figure.table for figure in found.figures)
    parts = [_table(name, [f for f in found.figures if f.table == name]) for name in tables]
    off = [figure for figure in found.figures if not figure.holds]
    end = f"{len(found.figures) - len(off)} of {len(found.figures)} figures hold"
    end += f"; {found.runs} runs from seed {found.seed}"
    parts.append(
        "\n".join((end, *(line for note in found.notes for line in wrap(f"note: {note}", WIDTH))))
    )
    rows = tuple(_row(figure) for figure in found.figures)
    body: dict[str, Json] = {
        "holds": found.holds,
        "runs": found.runs,
        "seed": found.seed,
        "figures": list(rows),
        "notes": list(found.notes),
    }
    code = ExitCode.OK if found.holds else ExitCode.WARNING
    return Page("PublishedTables", body, "\n\n".join(parts), code, rows=rows)


def _table(name: str, figures: list[PublishedFigure]) -> str:
    rows = [
        (
            figure.name,
            f"{figure.published:.{figure.digits}f}",
            f"{figure.ours:.{figure.digits}f}",
            f"{figure.difference:+.{figure.digits}f}",
            _accepted(figure),
            "ok" if figure.holds else "OFF",
            figure.source,
        )
        for figure in figures
    ]
    head = (name.upper(), "PUBLISHED", "OURS", "DIFFERENCE", "ACCEPTED", "", "FROM")
    return columns([head, *rows])


def _accepted(figure: PublishedFigure) -> str:
    if figure.off is None:
        return "-"
    if figure.share:
        return f"{100 * figure.off:g} %"
    return f"{figure.off:g}" if figure.off else "equal"


def _row(figure: PublishedFigure) -> dict[str, Json]:
    return {
        "table": figure.table,
        "name": figure.name,
        "published": figure.published,
        "ours": round(figure.ours, 6),
        "difference": round(figure.difference, 6),
        "accepted": figure.off,
        "accepted_is_ratio": figure.share,
        "holds": figure.holds,
        "source": figure.source,
    }
