"""Progress in words nobody taught us: lines of one shape whose counter climbs.

Every framework prints its steps in its own way, and every script again. What they share is that the
same line comes back with a number that only grows, beside a word of training.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.signature import healthy

ADVANCES = healthy("progress.shape", "step", 0.74, "lines of training whose counter climbs")
"""Not matched by text: made from a log's own lines."""

ROWS_NEEDED = 3

_CLOCK = re.compile(
    r"\b\d{4}[-/]\d\d?[-/]\d\d?(?:[T ]|\b)|\b\d{1,3}:\d\d(?::\d\d)?(?:[.,]\d+)?\b|\[ *\d+\.\d{4,}\]"
    r"|\b1[5-9]\d{8}(?:\.\d+)?\b|^[IWEF]\d{4} [\d:.]+ +\d+"
)
"""What grows from line to line in any log: dates, times of day, uptime, seconds since the epoch."""

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?", re.IGNORECASE)
TRAINING = re.compile(
    r"\b(?:steps?|iter(?:ation|s)?|epochs?|batch(?:es)?|loss|lr|reward|samples?|tokens?|accuracy|"
    r"acc|perplexity|ppl|it/s|s/it|consumed_\w+|global_step|throughput|tflops?)\b",
    re.IGNORECASE,
)
IN_VAIN = re.compile(
    r"\b(?:attempts?|retry|retries|retrying|again|waiting|wait|fail\w*|err\w*|warn\w*|time-?out\w*|"
    r"skip\w*|overflow|nan|inf|killed|missed|lost|unable|dropped|restart\w*)\b",
    re.IGNORECASE,
)
"""A counter that climbs beside these counts trials, not steps."""

_LINES = 400
_FEW_ROWS = 64


def progress_shape(lines: Mapping[int, str], source: str) -> LogEvent | None:
    """A proof of health from the newest lines of one shape whose counter climbs; None for none.

    Args:
        lines: A log's lines by number.
        source: The log's name.
    """
    newest: tuple[int, str] | None = None
    for rows in shapes(list(lines.items())[-_LINES:]):
        tail = rows[-_FEW_ROWS:]
        if len(tail) >= ROWS_NEEDED and _climbs([numbers for _, _, numbers in tail]):
            first = tail[-ROWS_NEEDED]
            newest = max(newest or (0, ""), (first[0], first[1]))
    return LogEvent(ADVANCES, source, newest[0], newest[1][:400]) if newest else None


def newest_counter(lines: Sequence[str]) -> int | None:
    """Where the counter of the newest lines of one shape stands; None for none that climbs."""
    newest: tuple[int, int] | None = None
    for rows in shapes(enumerate(lines[-_LINES:])):
        tail = rows[-_FEW_ROWS:]
        if len(tail) < ROWS_NEEDED:
            continue
        counters = [column for column in columns(tail) if grows(column)]
        if counters:
            newest = max(newest or (-1, 0), (tail[-1][0], int(counters[0][-1])))
    return newest[1] if newest else None


_Row = tuple[int, str, tuple[float, ...]]


def shapes(
    lines: Iterable[tuple[int, str]],
    words: re.Pattern[str] = TRAINING,
    *,
    in_vain: re.Pattern[str] = IN_VAIN,
) -> Iterator[Sequence[_Row]]:
    """Lines with such words and none in vain, gathered by what is left without their numbers."""
    gathered: dict[str, list[_Row]] = {}
    for number, text in lines:
        if words.search(text) and not in_vain.search(text):
            bare = _CLOCK.sub(" ", text)
            shape = " ".join(_NUMBER.sub("#", bare).split())
            gathered.setdefault(shape, []).append((number, text, tuple(_values(bare))))
    return iter(gathered.values())


def _values(text: str) -> Iterator[float]:
    for match in _NUMBER.findall(text):
        try:
            yield float(match.replace(",", ""))
        except ValueError:
            yield float("nan")


def columns(rows: Sequence[_Row]) -> Iterator[tuple[float, ...]]:
    """The numbers of rows of one shape, place by place."""
    return zip(*(numbers for _, _, numbers in rows), strict=True)


def _climbs(rows: Sequence[tuple[float, ...]]) -> bool:
    """Whether one number of the shape is whole and grows from each line to the next."""
    return any(grows(column) for column in zip(*rows, strict=True))


def grows(column: Sequence[float]) -> bool:
    """Whether a column holds whole numbers, each larger than the one before."""
    return all(value.is_integer() for value in column) and all(
        earlier < later for earlier, later in pairwise(column)
    )
