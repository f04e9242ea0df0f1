"""What the lines of a log make likely: their words, and what the rules make of each line.

A linear model of hashed words and of the parts that rules read on the same line. A class is as
likely as its lines together speak for it: the few that tell a cause stand among many that tell
nothing, so every line is scored by itself and the scores are summed where they are large. What the
answer is worth beside the rules' own is the table of `second_opinion` (decisions 0454, 0462).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import add

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.signature import SPEAKING
from brctl.evidence.logs.words.line_words import BUCKETS, buckets_of, features_of_line
from brctl.evidence.logs.words.marked_lines import (
    FACTS,
    FLAGS,
    MarkedLine,
    facts_of,
    marked_lines,
)
from brctl.model.fault import FaultClass

QUIET = (FaultClass.NO_FAULT, FaultClass.UNKNOWN)
"""Classes that no flag of a line speaks for, and the facts of the whole log do."""

LINES_NAMED = 2
"""Lines shown for one class: those that speak most for it."""

_SPEAKS = 0.2
"""A line that makes less than this of what speaks for a class is not shown for it."""

_ORDINARY = 0.45
"""What a line's own share of health is at least where its words of alarm mean nothing: of 18 logs
whose lines that no rule knows all were so, 17 were well (0466)."""

_RAREST = 5
"""Words of a line that count: a long line is not unusual for being long."""


@dataclass(frozen=True, slots=True)
class WordModel:
    """The shipped tables, as they lie in the file.

    Attributes:
        classes: The class of each column.
        weights: One signed byte a bucket and class, row after row.
        scale: What one step of a weight is worth.
        bias: What speaks for each class before any word.
        named: What a rule's class gains by the place of its part in SPEAKING.
        flags: What each flag of a line adds to every fault it may tell.
        facts: For each of QUIET what each fact about the log adds to it.
        surprise: One byte a bucket: sixteenths of a bit that its words surprise among ordinary
            lines.
    """

    classes: tuple[FaultClass, ...]
    weights: bytes
    scale: float
    bias: tuple[float, ...]
    named: tuple[float, ...]
    flags: tuple[float, ...]
    facts: tuple[tuple[float, ...], ...]
    surprise: bytes

    def __post_init__(self) -> None:
        if len(self.weights) != BUCKETS * len(self.classes) or len(self.surprise) != BUCKETS:
            raise ValueError("the tables do not fit the features of this version")
        if len(self.bias) != len(self.classes):
            raise ValueError(f"{len(self.bias)} biases for {len(self.classes)} classes")
        lengths = (len(self.named), len(self.flags), *(len(row) for row in self.facts))
        if lengths != (len(SPEAKING), FLAGS, *[FACTS] * len(QUIET)):
            raise ValueError("the marks do not fit the lines of this version")

    def shares(self, lines: Sequence[MarkedLine]) -> dict[FaultClass, float]:
        """How likely each class is by a log's lines; they add up to one."""
        scored = [_scores(self, line) for line in lines]
        sums = [_together(column) for column in zip(*scored, strict=True)] or list(self.bias)
        facts = facts_of(lines)
        for fault, weights in zip(QUIET, self.facts, strict=True):
            sums[self.classes.index(fault)] += _weighed(facts, weights)
        return dict(zip(self.classes, _softmax(sums), strict=True))

    def speaking_lines(self, fault: FaultClass, lines: Sequence[MarkedLine]) -> list[MarkedLine]:
        """The lines that speak most for a class, strongest first; none that hardly do."""
        column = self.classes.index(fault)
        scores = {line: _scores(self, line)[column] for line in lines}
        total = _together(list(scores.values())) if scores else 0.0
        ranked = sorted(scores, key=lambda line: -scores[line])[:LINES_NAMED]
        return [line for line in ranked if math.exp(scores[line] - total) >= _SPEAKS]

    def surprise_of(self, line: str) -> float:
        """Bits that the rarest words of a line surprise among ordinary lines."""
        buckets = buckets_of(f for f in features_of_line(line) if f.startswith("w:"))
        rarest = sorted((self.surprise[bucket] for bucket in buckets), reverse=True)[:_RAREST]
        return sum(rarest) / (16.0 * _RAREST)


@dataclass(frozen=True, slots=True)
class Heard:
    """The lines of one log and how likely they make each class; no line where nothing was read."""

    model: WordModel
    lines: tuple[MarkedLine, ...]
    shares: Mapping[FaultClass, float]

    def speaking(self, fault: FaultClass) -> list[MarkedLine]:
        """The lines that speak most for a class, strongest first."""
        return self.model.speaking_lines(fault, self.lines)

    def ordinary_lines(self) -> frozenset[int]:
        """Numbers of the lines that speak for health by themselves, whatever stands around them."""
        column = self.model.classes.index(FaultClass.NO_FAULT)
        return frozenset(
            line.number
            for line in self.lines
            if _softmax(_scores(self.model, line))[column] >= _ORDINARY
        )


def hear(model: WordModel, lines: Mapping[int, str], events: Sequence[LogEvent]) -> Heard:
    """What the model makes of a log's lines, given what the rules read on them.

    Args:
        model: The shipped tables.
        lines: Lines of the log by number, its two ends where it is long.
        events: What the rules read in it, whose lines are heard wherever they stand.
    """
    read = {event.line: event.text for event in events}
    marked = marked_lines(dict(sorted({**read, **lines}.items())), events)
    return Heard(model, marked, model.shares(marked) if marked else {})


@lru_cache(maxsize=2048)
def _scores(model: WordModel, line: MarkedLine) -> tuple[float, ...]:
    """What a line speaks for each class; kept, as leads are looked for in the lines just read."""
    scores = _by_words(model, line.text)
    flags = _weighed(line.flags, model.flags)
    for column, fault in enumerate(model.classes):
        if fault not in QUIET:
            scores[column] += flags
    for place, fault in line.named:
        scores[model.classes.index(fault)] += model.named[place]
    return tuple(scores)


def _by_words(model: WordModel, text: str) -> list[float]:
    buckets = buckets_of(features_of_line(text))
    step = model.scale / (math.sqrt(len(buckets)) or 1.0)
    width = len(model.classes)
    table = memoryview(model.weights).cast("b")
    sums = [0] * width
    for bucket in buckets:
        sums = list(map(add, sums, table[bucket * width : (bucket + 1) * width]))
    return [total * step + bias for total, bias in zip(sums, model.bias, strict=True)]


def _weighed(values: Iterable[float], weights: Iterable[float]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True))


def _together(scores: Sequence[float]) -> float:
    """The logarithm of the sum of what they are logarithms of: one loud line or many quiet ones."""
    top = max(scores)
    return top + math.log(sum(math.exp(score - top) for score in scores))


def _softmax(scores: Sequence[float]) -> list[float]:
    total = _together(scores)
    return [math.exp(score - total) for score in scores]
