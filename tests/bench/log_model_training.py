"""How the word model of logs is trained: multinomial logistic regression, in the span of its logs.

The weights are a sum of the logs' own feature rows, so gradient descent runs on one small matrix of
products between logs instead of on every bucket. Nothing is random: the same logs give the same
weights.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.words.line_words import BUCKETS, buckets_of_log
from brctl.model.fault import FaultClass

Matrix = NDArray[np.float64]

CLASSES = tuple(FaultClass)
RULE_WEIGHT = 0.3
"""What the words of one rule count beside a whole log."""

_STEPS = 400
_RATE = 2.0
_MOMENTUM = 0.9
_SHRINK = 1e-5
_NOT_WORDS = re.compile(r"\\[a-zA-Z]|[\\\[\](){}?*+|^$]")


@dataclass(frozen=True)
class Examples:
    """Rows of features with their classes and how much each counts."""

    rows: Matrix
    labels: NDArray[np.int64]
    counts: Matrix

    def chosen(self, keep: NDArray[np.bool_]) -> "Examples":
        return Examples(self.rows[keep], self.labels[keep], self.counts[keep])

    def joined(self, other: "Examples") -> "Examples":
        return Examples(
            np.vstack([self.rows, other.rows]),
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.counts, other.counts]),
        )


def row_of(text: str) -> Matrix:
    """The features of a log as a row of length one."""
    row = np.zeros(BUCKETS)
    found = sorted(frozenset().union(*buckets_of_log(text.splitlines())))
    row[found] = 1.0
    length = float(np.linalg.norm(row))
    return row / length if length else row


def examples_of(logs: Sequence[tuple[str, FaultClass]]) -> Examples:
    """Rows of labelled logs."""
    rows = np.stack([row_of(text) for text, _ in logs])
    labels = np.array([CLASSES.index(fault) for _, fault in logs])
    return Examples(rows, labels, np.ones(len(logs)))


def rule_examples() -> Examples:
    """The words of the shipped rules, so that the model knows what nobody logged yet."""
    logs = [
        (" ".join(rule.anchors) + "\n" + _NOT_WORDS.sub(" ", rule.pattern or ""), rule.fault)
        for rule in SHIPPED
        if rule.fault is not None
    ]
    found = examples_of(logs)
    return Examples(found.rows, found.labels, np.full(len(logs), RULE_WEIGHT))


def train(examples: Examples) -> tuple[Matrix, Matrix]:
    """Weights (bucket by class) and the bias of each class."""
    products = examples.rows @ examples.rows.T
    wanted = np.eye(len(CLASSES))[examples.labels]
    share = (examples.counts / examples.counts.sum())[:, None]
    mix = np.zeros_like(wanted)
    bias = np.zeros(len(CLASSES))
    mix_speed, bias_speed = np.zeros_like(mix), np.zeros_like(bias)
    for _ in range(_STEPS):
        wrong = (softmax(products @ mix + bias) - wanted) * share
        mix_speed = _MOMENTUM * mix_speed + wrong + _SHRINK * mix
        bias_speed = _MOMENTUM * bias_speed + wrong.sum(axis=0)
        mix -= _RATE * mix_speed
        bias -= _RATE * bias_speed
    return examples.rows.T @ mix, bias


def softmax(scores: Matrix) -> Matrix:
    """Shares of the classes, row by row."""
    raised: Matrix = np.exp(scores - scores.max(axis=1, keepdims=True))
    raised /= raised.sum(axis=1, keepdims=True)
    return raised
