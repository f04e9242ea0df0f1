"""What the words of a log's lines make likely: a linear model of hashed features.

Every line is read by itself, and a class is as likely as the line that speaks most for it: the few
lines that tell a cause stand among many that tell nothing. Rules and model are joined by
`second_opinion` (decision 0454).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import add

from brctl.evidence.logs.unexplained import template_of
from brctl.evidence.logs.words.components import tells_of_failure
from brctl.evidence.logs.words.line_words import (
    BUCKETS,
    buckets_of,
    features_of_line,
    sampled,
)
from brctl.model.fault import FaultClass

LINES_NAMED = 2
"""Lines shown for one lead: those that speak most for it."""


@dataclass(frozen=True, slots=True)
class WordModel:
    """The shipped tables, as they lie in the file.

    Attributes:
        classes: The class of each column.
        weights: One signed byte a bucket and class, row after row.
        scale: What one step of a weight is worth.
        bias: What speaks for each class before any word.
        surprise: One byte a bucket: sixteenths of a bit that its words surprise among ordinary
            lines.
    """

    classes: tuple[FaultClass, ...]
    weights: bytes
    scale: float
    bias: tuple[float, ...]
    surprise: bytes

    def __post_init__(self) -> None:
        if len(self.weights) != BUCKETS * len(self.classes) or len(self.surprise) != BUCKETS:
            raise ValueError("the tables do not fit the features of this version")
        if len(self.bias) != len(self.classes):
            raise ValueError(f"{len(self.bias)} biases for {len(self.classes)} classes")

    def shares(self, lines: Sequence[str]) -> dict[FaultClass, float]:
        """How likely each class is by the words of the lines; they add up to one at most.

        A fault has the share of the line that speaks most for it; a line that tells of no failure
        only names a thing, and counts half. What the surest fault leaves is shared by health and
        by a cause that no line tells.
        """
        found = [_heard(self, line) for line in _of_each_form(sampled(lines))]
        best = dict.fromkeys(self.classes, 0.0)
        for column, fault in enumerate(self.classes):
            best[fault] = max((shares[column] for shares in found), default=0.0)
        left = 1.0 - max(best[fault] for fault in self.classes if fault not in _QUIET)
        best |= {fault: part * left for fault, part in _QUIET.items()}
        return best

    def speaking_lines(self, fault: FaultClass, lines: Sequence[str]) -> tuple[str, ...]:
        """The lines that speak most for a class, strongest first; none that hardly do."""
        column = self.classes.index(fault)
        shares = {line: _heard(self, line)[column] for line in _of_each_form(sampled(lines))}
        ranked = sorted(shares, key=lambda line: -shares[line])
        return tuple(line for line in ranked[:LINES_NAMED] if shares[line] > _SPEAKS)

    def surprise_of(self, line: str) -> float:
        """Bits that the rarest words of a line surprise among ordinary lines."""
        buckets = buckets_of(f for f in features_of_line(line) if f.startswith("w:"))
        rarest = sorted((self.surprise[bucket] for bucket in buckets), reverse=True)[:_RAREST]
        return sum(rarest) / (16.0 * _RAREST)

    def shares_of_line(self, line: str) -> list[float]:
        """The share of each class by one line's words, in the order of the classes."""
        buckets = buckets_of(features_of_line(line))
        step = self.scale / (math.sqrt(len(buckets)) or 1.0)
        width = len(self.classes)
        table = memoryview(self.weights).cast("b")
        sums = [0] * width
        for bucket in buckets:
            sums = list(map(add, sums, table[bucket * width : (bucket + 1) * width]))
        scored = zip(sums, self.bias, strict=True)
        return _softmax([total * step + bias for total, bias in scored])


@lru_cache(maxsize=2048)
def _heard(model: WordModel, line: str) -> list[float]:
    """What a line's shares count; kept, as leads are looked for in the lines just read."""
    shares = model.shares_of_line(line)
    return shares if tells_of_failure(line) else [share * _NAMES_A_THING for share in shares]


def _of_each_form(lines: Iterable[str]) -> Iterable[str]:
    """One line of each form: ranks and steps repeat theirs."""
    return {template_of(line): line for line in lines}.values()


_NAMES_A_THING = 0.5

_QUIET = {FaultClass.NO_FAULT: 0.6, FaultClass.UNKNOWN: 0.2}
"""Parts of what the surest fault leaves, as they told most on unread logs (0454)."""

_SPEAKS = 0.05
"""A line that gives a class less is no line for it."""

_RAREST = 5
"""Words of a line that count: a long line is not unusual for being long."""


def _softmax(scores: Sequence[float]) -> list[float]:
    top = max(scores)
    raised = [math.exp(score - top) for score in scores]
    total = sum(raised)
    return [value / total for value in raised]
