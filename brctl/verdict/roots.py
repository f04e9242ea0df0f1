"""Which beliefs are causes, and which only follow from one.

A cause hides what it accounts for: the signs it makes on its own node, and those that others show
because they wait for it. A node that its own phase, stack or dump convicts does not wait for
anybody; such a belief stands beside the cause, for two things may break at once.
"""

from collections.abc import Collection, Iterable, Mapping

from brctl.model.evidence import Evidence, Role, Weight
from brctl.model.fault import FaultClass
from brctl.verdict.belief import BEHAVIOUR, Hypothesis, hypothesis_of

SURE = 0.9
"""A cause at least this likely explains even what seems likelier."""

LIKELY = 0.5
"""A cause less likely than this explains nothing."""

RECORDED = frozenset({FaultClass.NUMERIC_NAN, FaultClass.SILENT_CORRUPTION})
"""What a job's own checks saw before its end: code that then fails, fails of those numbers."""

TIE = 1e-9
"""Beliefs closer than this are equal; nothing but a node's name would tell them apart."""


def roots(
    beliefs: Mapping[Hypothesis, float],
    stand_alone: Collection[Hypothesis] = (),
    without_signs: Collection[Hypothesis] = (),
) -> dict[Hypothesis, float]:
    """The beliefs that no more likely belief explains; those without signs explain none."""
    return {
        hypothesis: belief
        for hypothesis, belief in beliefs.items()
        if not any(
            _explains(other, hypothesis, alone=hypothesis in stand_alone)
            and (
                _stronger(beliefs, other, hypothesis)
                or _recorded_before(beliefs, other, hypothesis, stand_alone)
            )
            for other in beliefs
            if other not in without_signs
        )
    }


def convicted_by_own_ranks(evidence: Iterable[Evidence]) -> frozenset[Hypothesis]:
    """Hypotheses that the ranks of the node itself convict: what they do, no other node makes."""
    return frozenset(
        hypothesis
        for item in evidence
        if item.weight is Weight.CONVICTS
        and item.role is Role.ROOT
        and item.source in BEHAVIOUR
        and (hypothesis := hypothesis_of(item)) is not None
        and hypothesis.node
    )


def convicted_of_numbers(evidence: Iterable[Evidence]) -> frozenset[FaultClass]:
    """Classes of wrong numbers that the job's own checks convict, of a node or of nobody."""
    return frozenset(
        item.fault
        for item in evidence
        if item.fault in RECORDED
        and item.weight is Weight.CONVICTS
        and item.role is Role.ROOT
        and item.source in BEHAVIOUR
    )


def _explains(cause: Hypothesis, effect: Hypothesis, *, alone: bool) -> bool:
    if cause == effect:
        return False
    same_node = cause.node == effect.node or not effect.node
    if same_node and effect.fault in cause.row.explains:
        return True
    return not alone and effect.fault in cause.row.everywhere and cause.node != effect.node


def _recorded_before(
    beliefs: Mapping[Hypothesis, float],
    cause: Hypothesis,
    effect: Hypothesis,
    by_own_ranks: Collection[Hypothesis],
) -> bool:
    """Wrong numbers of a rank explain a crash, however plainly its log names a line of code."""
    recorded = cause.fault in RECORDED and cause in by_own_ranks and beliefs[cause] >= LIKELY
    return recorded and effect.fault is FaultClass.USER_CODE


def _stronger(beliefs: Mapping[Hypothesis, float], cause: Hypothesis, effect: Hypothesis) -> bool:
    """A cause explains away what is not clearly likelier; at a tie of both, the catalogue rules.

    Equals of one class hide neither: nothing but the name of a node tells them apart.
    """
    if beliefs[cause] < LIKELY:
        return False
    mutual = _explains(effect, cause, alone=False)
    if mutual and cause.fault is effect.fault:
        return beliefs[cause] - beliefs[effect] > TIE  # two that do the same both did it
    if mutual:
        return (beliefs[cause], cause) > (beliefs[effect], effect)
    return beliefs[cause] >= beliefs[effect] or beliefs[cause] >= SURE
