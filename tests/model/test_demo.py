"""A demo is right when it names the broken node, and nobody where the program is to blame."""

from datetime import UTC, datetime

import pytest

from brctl.model.demo import DemoResult
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.verdict import Verdict
from brctl.verdict.decide import DecisionContext, decide


def verdict(fault: FaultClass, node: str) -> Verdict:
    item = Evidence("x.y", Subject(node), Weight.CONVICTS, fault, Role.ROOT, "test", "said")
    return decide([item], (), DecisionContext(datetime(2026, 5, 4, tzinfo=UTC)))[0]


@pytest.mark.parametrize("fault", [FaultClass.USER_CODE, FaultClass.DATA_LOADER])
def test_a_fault_of_the_program_names_no_node(fault: FaultClass) -> None:
    """Whatever node the program ran on when it failed."""
    result = DemoResult("x", fault.value, "n3", verdict=verdict(fault, "n3"))
    assert result.verdict is not None
    assert result.verdict.nodes == ()
    assert result.named_right


def test_only_the_broken_node_is_right() -> None:
    """An innocent node, or none, is wrong where a machine is to blame."""
    lost = FaultClass.GPU_LOST
    assert DemoResult("x", lost.value, "n3", verdict=verdict(lost, "n3")).named_right
    assert not DemoResult("x", lost.value, "n3", verdict=verdict(lost, "n4")).named_right
    assert not DemoResult("x", "pcie", "n3", verdict=verdict(lost, "n3")).named_right
    assert not DemoResult("x", lost.value, "n3").named_right
