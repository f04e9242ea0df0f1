"""How sure it is that nothing is wrong: silence, a hint or an unknown pace proves no health."""

from collections.abc import Mapping, Sequence

from brctl.model.evidence import Evidence, Gap, Role, Weight
from brctl.model.evidence_kinds import GRADIENT_NORM_JUMPED, LOSS_JUMPED
from brctl.model.fault import FaultClass
from brctl.verdict.belief import Hypothesis

PROVED = 0.95
"""Every check answered, nothing hints, and steps go on at their usual pace or ended well."""

PACE_UNKNOWN = 0.75
"""Everything that was asked is well, and nobody can tell whether the steps used to be quicker."""

HINT_STANDS = 0.6
"""Something hints at a fault and is too weak to be named."""


OWN_PAST = frozenset({LOSS_JUMPED, GRADIENT_NORM_JUMPED})
"""Evidence that training itself is not as it was, whatever the machines say."""


def chance_of_calm(
    chain: Sequence[Evidence],
    gaps: Sequence[Gap],
    beliefs: Mapping[Hypothesis, float],
    *,
    stalled: bool | None,
    usual_pace: bool | None,
    likely: bool = False,
    ailing: bool = False,
) -> float:
    """The probability of no fault when none was found; 0 when it cannot be told.

    Args:
        chain: What was observed.
        gaps: What was not.
        beliefs: What is hinted at all the same.
        stalled: The job makes no progress; None without a job.
        usual_pace: Its steps go on as they used to; None when nobody knows.
        likely: Something likely was seen that steps which go on speak against.
        ailing: Something is known against a node, also where it is nothing to the job.
    """
    if gaps or stalled is True or not chain or _unexplained(chain):
        return 0.0
    if usual_pace is False or (likely and not usual_pace) or _left_its_past(chain):
        return 0.0
    if beliefs or ailing:
        return HINT_STANDS
    if stalled is None:
        return PROVED  # there is no job whose pace could have changed
    return PROVED if usual_pace else PACE_UNKNOWN


def _left_its_past(chain: Sequence[Evidence]) -> bool:
    return any(item.kind in OWN_PAST and item.weight is Weight.HINTS for item in chain)


def _unexplained(chain: Sequence[Evidence]) -> bool:
    """Something failed, and no rule says what it was."""
    return any(
        item.role is Role.ROOT
        and item.fault is FaultClass.UNKNOWN
        and item.weight in (Weight.HINTS, Weight.CONVICTS)
        for item in chain
    )
