"""The next move written into a verdict: what speaks of the machine and what does not."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import HELD_BACK
from brctl.model.fault import Action, FaultClass
from brctl.model.verdict import Confidence
from brctl.playbook.recommend import PROCESS_STATE, recommend
from brctl.verdict.decide import DecisionContext, decide


def of_rank(kind: str, weight: Weight, fault: FaultClass | None, raw: str = "") -> Evidence:
    role = Role.ROOT if fault else Role.CONTEXT
    return Evidence(kind, Subject("n3", "rank:2"), weight, fault, role, "job.ranks", "text", raw)


@pytest.mark.parametrize(("held", "action"), [(True, Action.RESTART), (False, Action.SWAP)])
def test_a_rank_that_a_limit_holds_in_its_kernel_evicts_no_machine(
    held: bool, action: Action
) -> None:
    absent = of_rank("job.rank.absent", Weight.CONVICTS, FaultClass.HANG_MISMATCH)
    blocked = of_rank(PROCESS_STATE, Weight.CONTEXT, None, "job.rank.process_state D")
    frozen = [of_rank(HELD_BACK, Weight.CONTEXT, None)] if held else []
    context = DecisionContext(datetime(2026, 1, 1, tzinfo=UTC), job="llm", stalled=True)
    (verdict,) = decide([absent, blocked, *frozen], (), context)
    assert recommend(verdict).action is action


@pytest.mark.parametrize(("proved", "action"), [(True, Action.SWAP), (False, Action.LOCALISE)])
def test_wrong_results_that_nobody_measured_are_searched_for_before_a_swap(
    proved: bool, action: Action
) -> None:
    """Both are of medium confidence: the class is rare. A log's words are no measurement."""
    wrong = FaultClass.SILENT_CORRUPTION
    words = replace(of_rank("log.sdc.words", Weight.CONVICTS, wrong), strength=0.7)
    product = of_rank("job.rank.wrong-product", Weight.CONVICTS, wrong)
    context = DecisionContext(datetime(2026, 1, 1, tzinfo=UTC), job="llm", stalled=True)
    (verdict,) = decide([product if proved else words], (), context)
    assert verdict.confidence is Confidence.MEDIUM
    assert recommend(verdict).action is action
