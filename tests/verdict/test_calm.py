"""Nothing found is proof of health only where everything was asked and steps go on as before."""

from dataclasses import replace

import pytest

from brctl.model.evidence import Evidence, Gap, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.verdict import Confidence
from brctl.verdict.decide import DecisionContext, decide
from brctl.view.verdict import summary_lines
from tests.verdict.test_belief import NOW, seen

TRAINS = DecisionContext(decided_at=NOW, job="llm", stalled=False, usual_pace=True)
FINE = seen("n1", weight=Weight.CLEARS)
AILING = replace(seen("", weight=Weight.CONTEXT), kind="node.ailing", text="n2 is bad")
HINT = seen("n1", FaultClass.SILENT_CORRUPTION, Weight.HINTS)
"""Of a class so rare that a hint alone is below the floor of what is named."""


@pytest.mark.parametrize(
    ("chain", "context", "confidence"),
    [
        ([FINE], TRAINS, Confidence.HIGH),
        ([FINE], replace(TRAINS, usual_pace=None), Confidence.MEDIUM),
        ([FINE, HINT], TRAINS, Confidence.MEDIUM),
        ([FINE], DecisionContext(decided_at=NOW), Confidence.HIGH),
        ([FINE], replace(TRAINS, ailing=(AILING,)), Confidence.MEDIUM),
        ([FINE], DecisionContext(decided_at=NOW, ailing=(AILING,)), Confidence.MEDIUM),
    ],
)
def test_no_fault_is_high_only_with_proof(
    chain: list[Evidence], context: DecisionContext, confidence: Confidence
) -> None:
    (verdict,) = decide(chain, (), context)
    assert (verdict.fault, verdict.confidence) == (FaultClass.NO_FAULT, confidence)


def test_what_status_shows_of_its_nodes_stands_beside_no_fault() -> None:
    """Another tenant's kill is nothing to the job, and yet `brctl` shows the node as critical."""
    (verdict,) = decide([FINE], (), replace(TRAINS, ailing=(AILING,)))
    assert "but:    gpu.xid: n2 is bad" in summary_lines(verdict)


def test_a_hint_too_weak_to_be_named_stands_beside_no_fault() -> None:
    (verdict,) = decide([FINE, HINT], (), TRAINS)
    assert [(a.fault, a.nodes) for a in verdict.alternatives] == [(HINT.fault, ("n1",))]


@pytest.mark.parametrize(
    "context",
    [
        replace(TRAINS, stalled=True),
        replace(TRAINS, stalled=None, usual_pace=None),
        replace(TRAINS, usual_pace=False),
    ],
)
def test_what_does_not_train_as_it_did_or_cannot_be_read_is_unknown(
    context: DecisionContext,
) -> None:
    gaps = () if context.stalled is not None else (Gap(Subject("n1"), "job.ranks", "not read"),)
    (verdict,) = decide([FINE], gaps, context)
    assert verdict.fault is FaultClass.UNKNOWN


@pytest.mark.parametrize(
    ("pace", "fault"), [(True, FaultClass.NO_FAULT), (None, FaultClass.UNKNOWN)]
)
def test_an_error_of_code_is_a_lead_while_the_job_trains_on(
    pace: bool | None, fault: FaultClass
) -> None:
    """A program prints what it likes, and another tenant dies of its own memory."""
    said = seen("n1", FaultClass.CPU_OOM, source="host.kernel")
    (verdict,) = decide([FINE, said], (), replace(TRAINS, usual_pace=pace))
    assert verdict.fault is fault
    assert verdict.confidence is not Confidence.HIGH
    assert [a.fault for a in verdict.alternatives] == [FaultClass.CPU_OOM]
    stopped = decide([FINE, said], (), replace(TRAINS, stalled=True))
    assert stopped[0].fault is FaultClass.CPU_OOM


def test_a_failure_that_no_rule_explains_is_no_health() -> None:
    """Something ended, and nothing says why."""
    odd = seen("n1", FaultClass.UNKNOWN, Weight.HINTS)
    (verdict,) = decide([FINE, odd], (), TRAINS)
    assert verdict.fault is FaultClass.UNKNOWN


def test_a_loss_that_left_its_past_is_no_health() -> None:
    """Every machine is well and steps are quick: what is trained is still not what it was."""
    hint = replace(seen("", FaultClass.NUMERIC_NAN, Weight.HINTS), kind="job.steps.loss")
    (verdict,) = decide([FINE, hint], [], TRAINS)
    assert verdict.fault is not FaultClass.NO_FAULT
