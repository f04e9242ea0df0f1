"""From evidence to belief: one number for every hypothesis "this fault, on this node".

Rule 1: hypotheses on different nodes are independent; two bad nodes can both be found.
Rule 2: within one source only the strongest observation counts. The logs of a job are one source:
        their lines were weighed together, and what they say alone is believed as `logs classify`
        states it. Sources that look at the same thing repeat each other: the first conviction
        counts whole, every further source for a part.
Rule 3: what clears never rescues what convicts, and on one node nothing of another.
Rule 4: victims and teardown never speak.
Rule 5: nothing is as good as certain: what is measured at the machine is believed further than
        what the job's behaviour shows.
What follows from a likelier cause is told apart in `brctl/verdict/roots.py`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from brctl.model.evidence import Evidence, Role, Weight
from brctl.model.evidence_kinds import (
    FLIGHT_RECORDER,
    LOADER_CHECK,
    NCCL_RAS,
    RANKS_CHECK,
    STACKS_CHECK,
    WORKER_SERVER,
)
from brctl.model.fault import FaultClass
from brctl.model.fault_catalogue import CATALOGUE, FaultRow

# log10 likelihood ratios. A conviction alone lifts a 1:16 prior to about 0.95, a hint to 0.3,
# two hints from different sources to 0.8. tests/verdict/test_belief.py pins these three.
LOG_RATIO: Mapping[Weight, float] = {Weight.CONVICTS: 2.5, Weight.HINTS: 0.9, Weight.CLEARS: -0.5}

FURTHER = 0.2
"""The part for which a further source counts once one convicts (decision 0150)."""

CEILING = 0.97
BEHAVIOUR_CEILING = 0.94
"""No probability above; the second where only the job's own behaviour speaks (decision 0150)."""

BEHAVIOUR = frozenset(
    {RANKS_CHECK, STACKS_CHECK, LOADER_CHECK, FLIGHT_RECORDER, NCCL_RAS, WORKER_SERVER}
)
"""Sources that show what ranks do; why they do it may be the machine or the code."""

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
    standing = [
        hypothesis
        for hypothesis, items in spoken.items()
        if any(item.weight is not Weight.CLEARS for item in items)
    ]
    return {hypothesis: _belief(hypothesis, spoken[hypothesis]) for hypothesis in sorted(standing)}


def _belief(hypothesis: Hypothesis, items: Sequence[Evidence]) -> float:
    stated = probability(hypothesis.row.prior + _sum_of_sources(hypothesis, items))
    return min(_ceiling(items), stated)


def _ceiling(items: Iterable[Evidence]) -> float:
    against = {item.source for item in items if item.weight is not Weight.CLEARS}
    return BEHAVIOUR_CEILING if against <= BEHAVIOUR else CEILING


def _sum_of_sources(hypothesis: Hypothesis, items: Iterable[Evidence]) -> float:
    strongest: dict[str, float] = {}
    convicted = False
    for item in items:
        if item.weight is Weight.CLEARS and not hypothesis.row.per_node:
            continue  # one sound node says nothing of the job on another
        source = _LOGS if item.strength is not None else item.source
        ratio = _ratio(hypothesis, item)
        strongest[source] = max(ratio, strongest.get(source, ratio))
        convicted = convicted or item.weight is Weight.CONVICTS
    if not convicted:
        return sum(strongest.values())
    first, *further = sorted((ratio for ratio in strongest.values() if ratio > 0), reverse=True)
    return first + FURTHER * sum(further)


def _ratio(hypothesis: Hypothesis, item: Evidence) -> float:
    """What an observation adds to the prior; a strength is what it must come to alone."""
    if item.strength is None:
        return LOG_RATIO[item.weight]
    return math.log10(item.strength / (1.0 - item.strength)) - hypothesis.row.prior
