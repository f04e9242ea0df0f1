"""What the words of a log make likely where no rule speaks: a linear model of hashed features.

It names leads and never a fault: on families of sources it was not trained on, its likeliest class
is right too seldom (decision 0160). What the rules claim it confirms or doubts (decision 0428).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from brctl.evidence.logs.words.line_words import (
    BUCKETS,
    buckets_of,
    buckets_of_log,
    features_of_line,
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
        sharpness: Factor on the scores that made shares true on held-out families.
        surprise: One byte a bucket: sixteenths of a bit that its words surprise among ordinary
            lines.
    """

    classes: tuple[FaultClass, ...]
    weights: bytes
    scale: float
    bias: tuple[float, ...]
    sharpness: float
    surprise: bytes

    def __post_init__(self) -> None:
        if len(self.weights) != BUCKETS * len(self.classes) or len(self.surprise) != BUCKETS:
            raise ValueError("the tables do not fit the features of this version")
        if len(self.bias) != len(self.classes):
            raise ValueError(f"{len(self.bias)} biases for {len(self.classes)} classes")

    def shares(self, lines: Sequence[str]) -> dict[FaultClass, float]:
        """How likely each class is by the words alone; they add up to one."""
        found = sorted(frozenset[int]().union(*buckets_of_log(lines)))
        length = math.sqrt(len(found)) or 1.0
        step = self.scale / length
        sums = [0] * len(self.classes)
        width = len(self.classes)
        table = memoryview(self.weights).cast("b")
        for bucket in found:
            row = table[bucket * width : (bucket + 1) * width]
            for column, weight in enumerate(row):
                sums[column] += weight
        scores = [
            self.sharpness * (total * step + bias)
            for total, bias in zip(sums, self.bias, strict=True)
        ]
        return dict(zip(self.classes, _softmax(scores), strict=True))

    def speaking_lines(self, fault: FaultClass, lines: Sequence[str]) -> tuple[str, ...]:
        """The lines that speak most for a class, strongest first; none that speak against it."""
        column = self.classes.index(fault)
        scored = {line: self._said_for(column, line) for line in lines if line.strip()}
        ranked = sorted(scored, key=lambda line: -scored[line])
        return tuple(line for line in ranked[:LINES_NAMED] if scored[line] > 0)

    def surprise_of(self, line: str) -> float:
        """Bits that the rarest words of a line surprise among ordinary lines."""
        buckets = buckets_of(f for f in features_of_line(line) if f.startswith("w:"))
        rarest = sorted((self.surprise[bucket] for bucket in buckets), reverse=True)[:_RAREST]
        return sum(rarest) / (16.0 * _RAREST)

    def _said_for(self, column: int, line: str) -> int:
        table = memoryview(self.weights).cast("b")
        width = len(self.classes)
        buckets = buckets_of(features_of_line(line))
        return sum(table[bucket * width + column] for bucket in buckets)


_RAREST = 5
"""Words of a line that count: a long line is not unusual for being long."""


def _softmax(scores: Sequence[float]) -> list[float]:
    top = max(scores)
    raised = [math.exp(score - top) for score in scores]
    total = sum(raised)
    return [value / total for value in raised]
