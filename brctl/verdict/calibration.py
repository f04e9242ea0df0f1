"""How well stated probabilities held, by what people confirmed and dismissed."""

from collections.abc import Iterable
from dataclasses import dataclass

from brctl.model.verdict import Confidence, confidence_word


@dataclass(frozen=True, slots=True)
class Reliability:
    """Verdicts of one confidence that a person judged.

    Attributes:
        stated: Their mean probability.
    """

    confidence: Confidence
    judged: int
    right: int
    stated: float


def reliability(judged: Iterable[tuple[float, bool]]) -> tuple[Reliability, ...]:
    """One row a confidence, surest first; confidences nobody judged are left out.

    Examples:
        >>> [row] = reliability([(0.95, True), (0.97, False)])
        >>> row.confidence.value, row.judged, row.right, round(row.stated, 2)
        ('high', 2, 1, 0.96)
    """
    by_word: dict[Confidence, list[tuple[float, bool]]] = {}
    for probability, right in judged:
        by_word.setdefault(confidence_word(probability), []).append((probability, right))
    return tuple(
        Reliability(word, len(rows), sum(right for _, right in rows), _mean(p for p, _ in rows))
        for word in Confidence
        if (rows := by_word.get(word, []))
    )


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known)
