"""A benchmark that went on from small sizes to large ones: its table proves health as steps do."""

import re
from collections.abc import Mapping, Sequence

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.progress.shape import columns, grows, shapes
from brctl.evidence.logs.signature import healthy

MEASURED = healthy("progress.measured", "bandwidth", 0.74, "a benchmark's rows of growing sizes")
"""Not matched by text: made from a log's own lines."""

_ROWS_NEEDED = 4
_GROWN = 8.0
"""A benchmark's last size is many times its first; a list of processes or devices is not."""

_UNIT = re.compile(
    r"\b(?:bandwidth|latency|busbw|algbw|msgrate|[KMG]i?B/s(?:ec)?|Gb/s(?:ec)?|[GT]flop/?s|usec|us)\b",
    re.IGNORECASE,
)
_NUMBERS_ONLY = re.compile(r"^\s*\d+(?:[ \t,]+[-+\d.e]+)+\s*$", re.IGNORECASE)
_LINES = 400


def benchmark_rows(lines: Mapping[int, str], source: str) -> LogEvent | None:
    """The newest row of a table of measurements; rows of numbers alone need a heading with a unit.

    Args:
        lines: A log's lines by number.
        source: The log's name.
    """
    kept = list(lines.items())[-_LINES:]
    headed = any(_UNIT.search(text) for _, text in kept)
    bare = [(n, t.replace(",", " ")) for n, t in kept if headed and _NUMBERS_ONLY.match(t)]
    for rows in (*shapes(bare, _NUMBERS_ONLY), *shapes(kept, _UNIT)):
        if len(rows) >= _ROWS_NEEDED and _goes_on(list(columns(rows))):
            number, text, _ = rows[-1]
            return LogEvent(MEASURED, source, number, text[:400], count=len(rows))
    return None


def _goes_on(measured: Sequence[tuple[float, ...]]) -> bool:
    """Whether a size climbs to many times what it was while something else is measured."""
    return len(measured) > 1 and any(
        grows(column) and column[-1] >= _GROWN * max(column[0], 1.0) for column in measured
    )
