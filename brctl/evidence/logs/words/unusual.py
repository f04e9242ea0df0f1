"""Which lines of a log are worth a look when no rule knows them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from brctl.evidence.logs.unexplained import is_alarming, template_of
from brctl.evidence.logs.words.word_model import WordModel

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
    forms = [template_of(line.strip()) for line in lines]
    counts = Counter(forms)
    first = {form: number for number, form in reversed(list(enumerate(forms))) if form}
    found = [
        UnusualLine(
            number + 1,
            lines[number],
            counts[form],
            model.surprise_of(lines[number])
            + _rarity(counts[form], len(lines))
            + (_ALARM_BITS if is_alarming(lines[number]) else 0.0),
        )
        for form, number in first.items()
    ]
    return tuple(sorted(found, key=lambda line: (-line.score, line.number))[:limit])


def _rarity(alike: int, lines: int) -> float:
    """One bit for a form seen once, none for a form that fills the log."""
    return 1.0 - alike / lines
