"""From evidence to belief: one number for every hypothesis "this fault, on this node".

Rule 1: hypotheses on different nodes are independent; two bad nodes can both be found.
Rule 2: within one source only the strongest observation counts; sources count as independent.
        The logs of a job are one source: their lines were weighed together, and what they say
        alone is believed as `logs classify` states it.
Rule 3: what clears never rescues what convicts.
Rule 4: victims and teardown never speak.
Rule 5: a hypothesis that a more likely one explains is not a rival, it follows from it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from brctl.model.evidence import Evidence, Role, Weight
from brctl.model.fault import FaultClass
from brctl.model.fault_catalogue import CATALOGUE, FaultRow

# log10 likelihood ratios. A conviction alone lifts a 1:16 prior to about 0.95, a hint to 0.3,
# two hints from different sources to 0.8. tests/verdict/test_belief.py pins these three.
LOG_RATIO: Mapping[Weight, float] = {Weight.CONVICTS: 2.5, Weight.HINTS: 0.9, Weight.CLEARS: -0.5}
_SPEAKING = (Role.ROOT, Role.CONTEXT)
_LOGS = "the job's logs"


@dataclass(frozen=True, slots=True, order=True)
class Hypothesis:
    """One fault class on one node; node is "" for faults of the job."""

    fault: FaultClass
    node: str

    @property
    def row(self) -> FaultRow:
        return CATALOGUE[self.fault]


def probability(log_odds: float) -> float:
    """The probability for log10 odds, between 0 and 1.

    Examples:
        >>> round(probability(1.0), 3)
        0.909
    """
    odds = 10.0 ** max(-12.0, min(12.0, log_odds))
    return float(odds / (1.0 + odds))


def hypothesis_of(evidence: Evidence) -> Hypothesis | None:
    """What an observation speaks about; None for plain context."""
    if evidence.fault is None or evidence.fault in (FaultClass.NO_FAULT, FaultClass.UNKNOWN):
        return None
    node = evidence.subject.node if CATALOGUE[evidence.fault].per_node else ""
    return Hypothesis(evidence.fault, node)


def weigh(evidence: Iterable[Evidence]) -> dict[Hypothesis, float]:
    """Probability of every hypothesis that some observation hints at or convicts."""
    spoken: dict[Hypothesis, list[Evidence]] = {}
    for item in evidence:
        hypothesis = hypothesis_of(item)
        if hypothesis is not None and item.role in _SPEAKING and item.weight in LOG_RATIO:
            spoken.setdefault(hypothesis, []).append(item)
    return {
        hypothesis: probability(hypothesis.row.prior + _sum_of_sources(hypothesis, items))
        for hypothesis, items in sorted(spoken.items())
        if any(item.weight is not Weight.CLEARS for item in items)
    }


def _sum_of_sources(hypothesis: Hypothesis, items: Iterable[Evidence]) -> float:
    strongest: dict[str, float] = {}
    convicted = False
    for item in items:
        source = _LOGS if item.strength is not None else item.source
        ratio = _ratio(hypothesis, item)
        strongest[source] = max(ratio, strongest.get(source, ratio))
        convicted = convicted or item.weight is Weight.CONVICTS
    return sum(ratio for ratio in strongest.values() if ratio > 0 or not convicted)


def _ratio(hypothesis: Hypothesis, item: Evidence) -> float:
    """What an observation adds to the prior; a strength is what it must come to alone."""
    if item.strength is None:
        return LOG_RATIO[item.weight]
    return math.log10(item.strength / (1.0 - item.strength)) - hypothesis.row.prior


def roots(beliefs: Mapping[Hypothesis, float]) -> dict[Hypothesis, float]:
    """The beliefs that no more likely belief explains."""
    return {
        hypothesis: belief
        for hypothesis, belief in beliefs.items()
        if not any(
            _explains(other, hypothesis) and _stronger(beliefs, other, hypothesis)
            for other in beliefs
        )
    }


def _explains(cause: Hypothesis, effect: Hypothesis) -> bool:
    if cause == effect:
        return False
    same_node = cause.node == effect.node or not effect.node
    if same_node and effect.fault in cause.row.explains:
        return True
    return effect.fault in cause.row.everywhere and cause.node != effect.node


def _stronger(beliefs: Mapping[Hypothesis, float], cause: Hypothesis, effect: Hypothesis) -> bool:
    """A cause explains away what is not clearly likelier; at a tie of both, the catalogue rules."""
    if beliefs[cause] < 0.5:
        return False
    mutual = _explains(effect, cause)
    if mutual:
        return (beliefs[cause], cause) > (beliefs[effect], effect)
    return beliefs[cause] >= beliefs[effect] or beliefs[cause] >= 0.9
