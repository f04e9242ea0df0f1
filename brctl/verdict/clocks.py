"""A node's clock that alone differs: one answer hints at it, those of the others bear it out.

Whose clock is wrong, the node's or this machine's, no single answer tells. Where most nodes agree
with this machine, the odd one is off. It stops nothing and makes no other sign, so where a job
stands still it stays a lead beside the cause, and it never explains what others show.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from brctl.model.evidence import Evidence, Weight
from brctl.model.evidence_kinds import CLOCK_SKEW, FLEET
from brctl.verdict.belief import Hypothesis, hypothesis_of

LEAST_AGREEING = 2
"""Nodes whose clocks agree with ours, before an odd one is one (own)."""


def beside_other_clocks(evidence: Sequence[Evidence], stalled: bool | None) -> tuple[Evidence, ...]:
    """The evidence, and for each clock that differs from those of most nodes a second hint."""
    measured = [item for item in evidence if item.kind == CLOCK_SKEW]
    off = [item for item in measured if item.weight is Weight.HINTS]
    agree = {item.subject.node for item in measured if item.weight is Weight.CLEARS}
    few = len(agree) < LEAST_AGREEING or len(agree) <= len({i.subject.node for i in off})
    if stalled or few:
        return tuple(evidence)
    others = f"the clocks of {len(agree)} other nodes agree with this machine's, its own does not"
    return (*evidence, *(replace(item, source=FLEET, text=others) for item in off))


def only_clocks(evidence: Iterable[Evidence]) -> frozenset[Hypothesis]:
    """Hypotheses for which nothing but a clock speaks: they make no signs elsewhere."""
    kinds: dict[Hypothesis, set[str]] = {}
    for item in evidence:
        hypothesis = hypothesis_of(item)
        if hypothesis is not None and item.weight in (Weight.HINTS, Weight.CONVICTS):
            kinds.setdefault(hypothesis, set()).add(item.kind)
    return frozenset(h for h, found in kinds.items() if found == {CLOCK_SKEW})
