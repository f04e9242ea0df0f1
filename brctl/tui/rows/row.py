"""What screens draw: rows of toned text. A tone is a meaning; the theme decides its colour."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.cells import cell_len, set_cell_size

from brctl.view.text import printable

ROW_LIMIT = 500
"""Rows a list mounts at most; beyond it a list says how many it leaves out."""


class Tone(StrEnum):
    """What a piece of text means. Every tone also has a letter or a word on screen."""

    PLAIN = "plain"
    DIM = "dim"
    HEAD = "head"
    OK = "ok"
    WARN = "warn"
    CRIT = "crit"
    UNKNOWN = "unknown"
    CORDON = "cordon"
    SPARE = "spare"


Span = tuple[str, Tone]


@dataclass(frozen=True, slots=True)
class Row:
    """One line.

    Attributes:
        key: What the line stands for, `node:gpu0412`, `verdict:V-7K3`; "" cannot be selected.
    """

    spans: tuple[Span, ...]
    key: str = ""

    @property
    def text(self) -> str:
        """The line without tones."""
        return "".join(text for text, _ in self.spans)


def row(*spans: Span | str, key: str = "") -> Row:
    """A line of spans; bare text is plain."""
    return Row(tuple((s, Tone.PLAIN) if isinstance(s, str) else s for s in spans), key)


def blank() -> Row:
    """An empty line."""
    return Row(())


def heading(text: str) -> Row:
    """A title line."""
    return row((text, Tone.HEAD))


def safe(text: str, limit: int = 400) -> str:
    """Text from a node, a log or a person: harmless and bounded."""
    return printable(text, limit)


def place_of(origin: str) -> str:
    """`guards.yaml:3` of a full path; the folder is on the command line's output."""
    return safe(origin.rpartition("/")[2], 80)


def fitted(text: str, width: int) -> str:
    """Text of exactly this many terminal cells; a cut is marked."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(text, max(width - 1, 0)) + "…" if width > 0 else ""


def table(
    head: Sequence[str],
    body: Iterable[tuple[Sequence[Span | str], str]],
    *,
    widest: int = 60,
) -> list[Row]:
    """Columns two spaces apart; each body entry is its cells and its key."""
    lines = [([_span(cell) for cell in cells], key) for cells, key in body]
    widths = [cell_len(title) for title in head]
    for cells, _ in lines:
        for index, (text, _) in enumerate(cells[:-1]):
            widths[index] = min(max(widths[index], cell_len(text)), widest)
    titles = "  ".join(fitted(t, w) for t, w in zip(head[:-1], widths, strict=False))
    found = [heading(f"{titles}  {head[-1]}" if len(head) > 1 else head[-1])]
    for cells, key in lines:
        spans: list[Span] = []
        for (text, tone), width in zip(cells[:-1], widths, strict=False):
            spans += [(fitted(text, width), tone), ("  ", Tone.PLAIN)]
        found.append(Row((*spans, cells[-1]), key))
    return found


def _span(cell: Span | str) -> Span:
    return (cell, Tone.PLAIN) if isinstance(cell, str) else cell


def paragraph(label: str, text: str, width: int, tone: Tone = Tone.PLAIN) -> list[Row]:
    """A labelled text, wrapped and indented under itself."""
    indent = " " * len(label)
    available = max(width - len(label), 20)
    lines = textwrap.wrap(text, available) or [""]
    first = row((label, Tone.HEAD), (lines[0], tone))
    return [first, *(row(indent, (line, tone)) for line in lines[1:])]


def flowed(spans: Sequence[Span], width: int) -> list[Row]:
    """Pairs of spans on as few lines as hold them; a pair is never torn."""
    lines: list[list[Span]] = [[]]
    used = 0
    for pair in zip(spans[::2], spans[1::2], strict=True):
        wide = sum(cell_len(text) for text, _ in pair)
        if used + wide > width and lines[-1]:
            lines.append([])
            used = 0
        lines[-1] += pair
        used += wide
    return [Row(tuple(line)) for line in lines]


def cut(rows: Sequence[Row], limit: int = ROW_LIMIT) -> list[Row]:
    """At most this many rows, and a last one that says what is left out."""
    if len(rows) <= limit:
        return list(rows)
    return [*rows[:limit], row((f"{limit} of {len(rows):,}, / to filter", Tone.WARN))]
