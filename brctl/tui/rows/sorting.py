"""The order of a table's lines by what one of their cells says; pure."""

import re

from brctl.model.nodeset import natural_key
from brctl.tui.rows.row import Row

_DURATION = re.compile(r"(\d+(?:\.\d+)?) s|(\d+)m(\d\d)|(\d+)h(\d\d)|(\d+)d(\d\d)h")
_UNITS_S = (1.0, 60.0, 1.0, 3600.0, 60.0, 86400.0, 3600.0)
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?")

SortKey = tuple[int, float, tuple[tuple[int, int, str], ...]]


def sort_key(cell: str) -> SortKey:
    """Numbers and durations by their size, then names with their numbers, then what is unknown.

    Examples:
        >>> sorted(["3m03", "-", "9.5 s ago", "2h05"], key=sort_key)
        ['9.5 s ago', '3m03', '2h05', '-']
        >>> sorted(["n10", "n9", "12"], key=sort_key)
        ['12', 'n9', 'n10']
    """
    text = cell.strip().removesuffix(" ago")
    if text in ("", "-"):
        return (2, 0.0, ())
    if match := _DURATION.fullmatch(text):
        parts = zip(match.groups(), _UNITS_S, strict=True)
        return (0, sum(float(part) * unit for part, unit in parts if part), ())
    if _NUMBER.fullmatch(text):
        return (0, float(text), ())
    return (1, 0.0, natural_key(text))


def titles_of(rows: list[Row]) -> list[str]:
    """The titles of a table's columns, each one word; none where there is no table."""
    return rows[0].text.split() if len(rows) > 1 else []


def sorted_rows(rows: list[Row], column: int, *, reverse: bool = False) -> list[Row]:
    """A table's lines by one column, its head staying first; -1 leaves them as they are."""
    if column < 0:
        return rows
    # Cells and the gaps between them alternate.
    index = 2 * column
    head, body = rows[:1], rows[1:]
    return head + sorted(body, key=lambda r: sort_key(r.spans[index][0]), reverse=reverse)


def in_order(rows: list[Row], sort: str) -> list[Row]:
    """A table's lines in the order an address asks for; an unknown title changes nothing."""
    title, titles = sort.removeprefix("-").upper(), titles_of(rows)
    if title not in titles:
        return rows
    return sorted_rows(rows, titles.index(title), reverse=sort.startswith("-"))
