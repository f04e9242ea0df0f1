"""How the word model of logs is trained: the lines of a log answer together, and no one says which.

Multinomial logistic regression over logs whose score for a class is the logarithm of the sum of
what their lines score (decision 0462). Words and marks are kept sparse, and all logs take part in
every step. Nothing is random: the same logs give the same tables.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cache

import numpy as np
from numpy.typing import NDArray

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.evidence.logs.signature import SPEAKING
from brctl.evidence.logs.words.line_words import BUCKETS, buckets_of, features_of_line
from brctl.evidence.logs.words.marked_lines import (
    FACTS,
    FLAGS,
    MarkedLine,
    facts_of,
    marked_lines,
)
from brctl.evidence.logs.words.word_model import QUIET
from brctl.model.fault import FaultClass
from tests.bench.log_tables import Example

Matrix = NDArray[np.float64]
Numbers = NDArray[np.int64]

CLASSES = tuple(FaultClass)
_TELLS = np.array([fault not in QUIET for fault in CLASSES], float)
_QUIET_COLUMNS = [CLASSES.index(fault) for fault in QUIET]

_STEPS = 120
_RATE = 0.08
_FIRST, _SECOND, _TINY = 0.9, 0.99, 1e-8
_SHRINK = 1e-5


@dataclass(frozen=True)
class HeardLog:
    """The marked lines of a labelled log.

    Attributes:
        faults: Its class, and those that it may be as well.
        count: What it counts beside a whole log.
    """

    lines: Sequence[MarkedLine]
    faults: frozenset[FaultClass]
    count: float = 1.0


@dataclass(frozen=True)
class Examples:
    """All lines of all logs, one log behind the other; a log has at least one.

    Attributes:
        buckets: Buckets of the words of all lines, one line behind the other.
        lengths: How many of them belong to each line; at least one.
        logs: The log of each line.
        named: A row for each class that a rule names on a line: the line, the part, the class.
        flags: The flags of each line.
        facts: The facts of each log.
        wanted: For each log and class whether it is right.
        counts: What each log counts.
    """

    buckets: Numbers
    lengths: Numbers
    logs: Numbers
    named: Numbers
    flags: Matrix
    facts: Matrix
    wanted: Matrix
    counts: Matrix


@dataclass
class Tables:
    """What is learned, or the slope of the loss at it."""

    weights: Matrix = field(default_factory=lambda: np.zeros((BUCKETS, len(CLASSES))))
    bias: Matrix = field(default_factory=lambda: np.zeros(len(CLASSES)))
    named: Matrix = field(default_factory=lambda: np.zeros(len(SPEAKING)))
    flags: Matrix = field(default_factory=lambda: np.zeros(FLAGS))
    facts: Matrix = field(default_factory=lambda: np.zeros((len(QUIET), FACTS)))

    def parts(self) -> list[Matrix]:
        return [getattr(self, part.name) for part in fields(self)]


def examples_of(logs: Iterable[HeardLog]) -> Examples:
    """The arrays of some logs; lines without a word, and logs without such a line, are left out."""
    read = [(log, [(line, _buckets(line.text)) for line in log.lines]) for log in logs]
    spoken = [(log, [row for row in rows if row[1]]) for log, rows in read]
    kept = [(log, rows) for log, rows in spoken if rows]
    lines = [(number, *row) for number, (_, rows) in enumerate(kept) for row in rows]
    named = [
        (place, part, CLASSES.index(fault))
        for place, (_, line, _) in enumerate(lines)
        for part, fault in sorted(line.named)
    ]
    return Examples(
        np.array([bucket for *_, buckets in lines for bucket in buckets]),
        np.array([len(buckets) for *_, buckets in lines]),
        np.array([number for number, *_ in lines]),
        np.array(named, np.int64).reshape(-1, 3),
        np.array([line.flags for _, line, _ in lines], float),
        np.array([facts_of(log.lines) for log, _ in kept]),
        np.array([[fault in log.faults for fault in CLASSES] for log, _ in kept], float),
        np.array([log.count for log, _ in kept]),
    )


@cache
def _buckets(text: str) -> tuple[int, ...]:
    return tuple(sorted(buckets_of(features_of_line(text))))


def heard_example(row: Example) -> HeardLog:
    """A composed text with the marks of our rules, whose authors did not see it."""
    lines = dict(enumerate(row.text.splitlines(), 1))
    marked = marked_lines(lines, _events(lines))
    return HeardLog(marked, frozenset({row.fault, *row.others}), row.weight)


def heard_without_rules(text: str, fault: FaultClass) -> HeardLog:
    """A log that rules were written for: heard with their marks it would praise them too much."""
    lines = dict(enumerate(text.splitlines(), 1))
    return HeardLog(marked_lines(lines, ()), frozenset({fault}))


@cache
def _index() -> LineIndex:
    return LineIndex(SHIPPED)


def _events(lines: dict[int, str]) -> list[LogEvent]:
    reader = LineReader("log", _index())
    for number, line in lines.items():
        reader.read(number, line.encode())
    return reader.events()


def train(examples: Examples) -> Tables:
    """The tables, by Adam over all logs at once."""
    slopes = _Slopes(examples)
    values, first, second = Tables(), Tables(), Tables()
    for step in range(1, _STEPS + 1):
        found = slopes.at(values).parts()
        near, far = 1.0 - _FIRST**step, 1.0 - _SECOND**step
        parts = zip(values.parts(), first.parts(), second.parts(), found, strict=True)
        for value, mean, spread, slope in parts:
            mean += (1.0 - _FIRST) * (slope - mean)  # arrays change in place
            spread += (1.0 - _SECOND) * (slope**2 - spread)
            value -= _RATE * (mean / near) / (np.sqrt(spread / far) + _TINY)
    return values


class _Slopes:
    """The loss's slope: where each bucket and each log begins is found once."""

    def __init__(self, examples: Examples) -> None:
        self._rows = examples
        self._root = np.sqrt(examples.lengths)[:, None]
        self._first_bucket = np.concatenate([[0], np.cumsum(examples.lengths)[:-1]])
        self._first_line = np.flatnonzero(np.diff(examples.logs, prepend=-1))
        self._share = (examples.counts / examples.counts.sum())[:, None]
        owners = np.repeat(np.arange(len(examples.lengths)), examples.lengths)
        order = np.argsort(examples.buckets, kind="stable")
        self._owners = owners[order]
        self._present, self._starts = np.unique(examples.buckets[order], return_index=True)

    def lines(self, tables: Tables) -> Matrix:
        """What every line speaks for every class."""
        rows = self._rows
        sums: Matrix = np.add.reduceat(tables.weights[rows.buckets], self._first_bucket, axis=0)
        sums = sums / self._root + tables.bias + np.outer(rows.flags @ tables.flags, _TELLS)
        place, part, column = rows.named.T
        np.add.at(sums, (place, column), tables.named[part])
        return sums

    def at(self, tables: Tables) -> Tables:
        rows, lines = self._rows, self.lines(tables)
        logs = together(lines, self._first_line, rows.logs)
        parts = np.exp(lines - logs[rows.logs])
        logs[:, _QUIET_COLUMNS] += rows.facts @ tables.facts.T
        wrong = softmax(logs)
        wrong -= _shared(wrong * rows.wanted)
        wrong *= self._share
        facts = wrong[:, _QUIET_COLUMNS].T @ rows.facts
        by_line = wrong[rows.logs] * parts
        place, part, column = rows.named.T
        named = np.zeros(len(SPEAKING))
        np.add.at(named, part, by_line[place, column])
        flags = rows.flags.T @ (by_line @ _TELLS)
        weights = 2.0 * _SHRINK * tables.weights
        by_word = by_line / self._root
        weights[self._present] += np.add.reduceat(by_word[self._owners], self._starts, axis=0)
        return Tables(weights, by_line.sum(axis=0), named, flags, facts)


def together(lines: Matrix, starts: Numbers, logs: Numbers) -> Matrix:
    """For every log the logarithm of the sum of what its lines are logarithms of."""
    tops: Matrix = np.maximum.reduceat(lines, starts, axis=0)
    sums: Matrix = np.add.reduceat(np.exp(lines - tops[logs]), starts, axis=0)
    summed: Matrix = tops + np.log(sums)
    return summed


def _shared(raised: Matrix) -> Matrix:
    shares: Matrix = raised / np.maximum(raised.sum(axis=1, keepdims=True), math.ulp(0.0))
    return shares


def softmax(scores: Matrix) -> Matrix:
    """Shares of the classes, row by row."""
    raised: Matrix = np.exp(scores - scores.max(axis=1, keepdims=True))
    return _shared(raised)
