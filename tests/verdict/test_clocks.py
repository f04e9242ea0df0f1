"""A clock that is off is told as one, never as what stops a job, and hides nothing else."""

from dataclasses import replace

import pytest

from brctl.model.evidence import Evidence, Role, Weight
from brctl.model.evidence_kinds import CLOCK_SKEW
from brctl.model.fault import FaultClass
from brctl.model.verdict import Confidence
from brctl.verdict.decide import decide
from tests.verdict.test_belief import CONTEXT, seen

CLOCK = FaultClass.ENVIRONMENT_MISMATCH


def clocks(off: str, others: int = 3) -> list[Evidence]:
    """What the nodes' clocks say: one is off, the others agree with this machine's."""
    fine = (seen(f"m{i}", CLOCK, Weight.CLEARS, "host.clock", Role.CONTEXT) for i in range(others))
    return [
        replace(item, kind=CLOCK_SKEW)
        for item in (seen(off, CLOCK, Weight.HINTS, "host.clock"), *fine)
    ]


@pytest.mark.parametrize(
    ("others", "stalled", "confidence"),
    [
        (3, False, Confidence.MEDIUM),
        (3, None, Confidence.MEDIUM),
        (3, True, Confidence.LOW),
        (1, False, Confidence.LOW),
    ],
)
def test_the_clocks_of_others_bear_out_that_one_is_off(
    others: int, stalled: bool | None, confidence: Confidence
) -> None:
    """With one other clock, or a job that stands still, it stays a lead; nobody is woken for it."""
    (verdict,) = decide(clocks("n4", others), (), replace(CONTEXT, stalled=stalled))
    assert (verdict.fault, verdict.nodes, verdict.confidence) == (CLOCK, ("n4",), confidence)
    assert verdict.title == "a node's clock is off"


@pytest.mark.parametrize(
    ("fault", "weight"),
    [(FaultClass.STRAGGLER_SLOW, Weight.CONVICTS), (FaultClass.NETWORK_ETH, Weight.CONVICTS)],
)
def test_a_clock_that_is_off_explains_no_slow_node_and_comes_after_it(
    fault: FaultClass, weight: Weight
) -> None:
    slow = seen("n2", fault, weight, "job.ranks")
    found = decide([*clocks("n4"), slow], (), replace(CONTEXT, stalled=False))
    assert [(v.fault, v.nodes) for v in found] == [(fault, ("n2",)), (CLOCK, ("n4",))]
