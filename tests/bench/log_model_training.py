"""How the word model of logs is trained: multinomial logistic regression over hashed features.

Every example is a row of length one over the buckets of its features. The rows are kept sparse, and
all of them take part in every step. Nothing is random: the same logs give the same weights.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.words.line_words import BUCKETS, buckets_of, features_of_line, sampled
from brctl.model.fault import FaultClass
from tests.bench.log_tables import Example

Matrix = NDArray[np.float64]
Numbers = NDArray[np.int64]

CLASSES = tuple(FaultClass)
RULE_WEIGHT = 0.3
"""What the words of one rule count beside a whole log."""

_STEPS = 150
_RATE = 0.08
_FIRST, _SECOND, _TINY = 0.9, 0.99, 1e-8
_SHRINK = 1e-5
_NOT_WORDS = re.compile(r"\\[a-zA-Z]|[\\[\](){}?*+|^$]")


@dataclass(frozen=True)
class Examples:
    """Sparse rows with their classes and how much each counts.

    Attributes:
        buckets: The buckets of all rows, one row behind the other.
        lengths: How many of them belong to each row; at least one.
        labels: The class of each row, as its place in CLASSES.
        counts: What each row counts beside a whole log.
    """

    buckets: Numbers
    lengths: Numbers
    labels: Numbers
    counts: Matrix

    def chosen(self, keep: NDArray[np.bool_]) -> "Examples":
        kept = self.buckets[np.repeat(keep, self.lengths)]
        return Examples(kept, self.lengths[keep], self.labels[keep], self.counts[keep])

    def joined(self, other: "Examples") -> "Examples":
        return Examples(
            np.concatenate([self.buckets, other.buckets]),
            np.concatenate([self.lengths, other.lengths]),
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.counts, other.counts]),
        )

    def scores(self, weights: Matrix, bias: Matrix) -> Matrix:
        """What the weights make of every row, class by class."""
        starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])
        sums: Matrix = np.add.reduceat(weights[self.buckets], starts, axis=0)
        return sums / np.sqrt(self.lengths)[:, None] + bias


def examples_of(logs: Sequence[Example]) -> Examples:
    """Rows of labelled texts; those without a word are left out."""
    rows = [sorted(frozenset[int]().union(*buckets_of_log(log.text.splitlines()))) for log in logs]
    kept = [(row, log) for row, log in zip(rows, logs, strict=True) if row]
    return Examples(
        np.array([bucket for row, _ in kept for bucket in row]),
        np.array([len(row) for row, _ in kept]),
        np.array([CLASSES.index(log.fault) for _, log in kept]),
        np.array([log.weight for _, log in kept]),
    )


def buckets_of_log(lines: Sequence[str]) -> list[frozenset[int]]:
    """For every line looked at the buckets of its features."""
    return [buckets_of(features_of_line(line)) for line in sampled(lines)]


def rule_examples() -> Examples:
    """The words of the shipped rules, so that the model knows what nobody logged yet."""
    return examples_of(
        [
            Example(
                " ".join(rule.anchors) + "\n" + _NOT_WORDS.sub(" ", rule.pattern or ""),
                rule.fault,
                RULE_WEIGHT,
            )
            for rule in SHIPPED
            if rule.fault is not None
        ]
    )


def train(examples: Examples) -> tuple[Matrix, Matrix]:
    """Weights (bucket by class) and the bias of each class, by Adam over all rows at once."""
    slopes = _Slopes(examples)
    values = np.zeros((BUCKETS + 1, len(CLASSES)))
    first, second = np.zeros_like(values), np.zeros_like(values)
    for step in range(1, _STEPS + 1):
        slope = slopes.at(values)
        first = _FIRST * first + (1.0 - _FIRST) * slope
        second = _SECOND * second + (1.0 - _SECOND) * slope**2
        ahead, spread = first / (1.0 - _FIRST**step), second / (1.0 - _SECOND**step)
        values -= _RATE * ahead / (np.sqrt(spread) + _TINY)
    return values[:-1], values[-1]


class _Slopes:
    """The slope of the loss: the rows of each bucket are found once."""

    def __init__(self, examples: Examples) -> None:
        self._examples = examples
        self._wanted = np.eye(len(CLASSES))[examples.labels]
        self._share = (examples.counts / examples.counts.sum())[:, None]
        rows = np.repeat(np.arange(len(examples.lengths)), examples.lengths)
        order = np.argsort(examples.buckets, kind="stable")
        self._rows = rows[order]
        self._present, self._starts = np.unique(examples.buckets[order], return_index=True)

    def at(self, values: Matrix) -> Matrix:
        """The slope at weights whose last row is the bias."""
        wrong = softmax(self._examples.scores(values[:-1], values[-1])) - self._wanted
        wrong *= self._share
        slope = _SHRINK * values
        slope[-1] = wrong.sum(axis=0)
        by_length = wrong / np.sqrt(self._examples.lengths)[:, None]
        slope[self._present] += np.add.reduceat(by_length[self._rows], self._starts, axis=0)
        return slope


def softmax(scores: Matrix) -> Matrix:
    """Shares of the classes, row by row."""
    raised: Matrix = np.exp(scores - scores.max(axis=1, keepdims=True))
    raised /= raised.sum(axis=1, keepdims=True)
    return raised
