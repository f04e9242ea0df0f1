"""Day by day, how much of a job's time was productive: which day was the bad one."""

from collections.abc import Sequence

from brctl.model.jobs.job_time import US, JobTime, moment_of
from brctl.model.simulation import Book
from brctl.model.units import describe_duration
from brctl.view import html_page

_WIDTH, _ROW, _LEFT, _BAR = 900, 20, 90, 500


def day_bars(days: Sequence[JobTime]) -> str:
    """A bar for each day, what is missing in another colour, and beside it what took most."""
    pieces = [piece for row, day in enumerate(days) for piece in _bar(row * _ROW, day)]
    height = _ROW * len(days)
    return f'<svg viewBox="0 0 {_WIDTH} {height}">\n' + "\n".join(pieces) + "\n</svg>"


def _bar(top: int, day: JobTime) -> tuple[str, ...]:
    good = _BAR * (day.ettr or 0.0)
    shape = f'y="{top + 3}" height="{_ROW - 6}"'
    date = f"{moment_of(day.from_us):%Y-%m-%d}"
    return (
        f'<text x="0" y="{top + 15}">{html_page.cell(date)}</text>',
        f'<rect x="{_LEFT}" width="{good:.1f}" {shape} fill="#0969da"/>',
        f'<rect x="{_LEFT + good:.1f}" width="{_BAR - good:.1f}" {shape} fill="#cf222e"/>',
        f'<text x="{_LEFT + _BAR + 10}" y="{top + 15}">{html_page.cell(_words(day))}</text>',
    )


def _words(day: JobTime) -> str:
    lost = {book: us for book, us in day.books_us.items() if us and book is not Book.PRODUCTIVE}
    said = f"{100 * (day.ettr or 0.0):.2f} %"
    if not lost:
        return said
    most = max(lost, key=lambda book: lost[book])
    return f"{said}, most lost: {most.value} {describe_duration(lost[most] / US)}"
