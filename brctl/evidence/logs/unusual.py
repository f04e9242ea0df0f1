"""Which lines of a log are worth a look when no rule knows them."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from brctl.evidence.logs.word_model import WordModel

_VALUES = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8,}|\d+", re.IGNORECASE)
_ALARM = re.compile(
    r"\b(?:error|fail(?:ed|ure)?|fatal|panic|abort(?:ed)?|timed out|timeout|unable|cannot|"
    r"corrupt\w*|lost|refused|unreachable|hung|stuck|stall(?:ed)?|exception|killed)\b",
    re.IGNORECASE,
)
_ALARM_BITS = 3.0
"""How much a word of alarm counts: as much as words that one ordinary log in eight has."""


@dataclass(frozen=True, slots=True)
class UnusualLine:
    """A line and why it stands out.

    Attributes:
        number: Line number from 1.
        alike: Lines of the log that differ from it in numbers only, itself included.
        score: Bits of surprise: rare words among ordinary lines, rare form in its own log, alarm.
    """

    number: int
    text: str
    alike: int
    score: float


def rank_unusual(lines: Sequence[str], model: WordModel, limit: int = 8) -> tuple[UnusualLine, ...]:
    """The most unusual lines, one of each form, most unusual first; equals in their own order."""
    forms = [_VALUES.sub("#", line.strip()) for line in lines]
    counts = Counter(forms)
    first = {form: number for number, form in reversed(list(enumerate(forms))) if form}
    found = [
        UnusualLine(
            number + 1,
            lines[number],
            counts[form],
            model.surprise_of(lines[number])
            + _rarity(counts[form], len(lines))
            + (_ALARM_BITS if _ALARM.search(lines[number]) else 0.0),
        )
        for form, number in first.items()
    ]
    return tuple(sorted(found, key=lambda line: (-line.score, line.number))[:limit])


def _rarity(alike: int, lines: int) -> float:
    """One bit for a form seen once, none for a form that fills the log."""
    return 1.0 - alike / lines
