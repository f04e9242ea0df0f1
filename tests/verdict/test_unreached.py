"""While most nodes are not reached, nobody is named and nothing is swapped."""

from dataclasses import replace

import pytest

from brctl.model.evidence import Evidence, Gap, Subject, Weight
from brctl.model.fault import Action, FaultClass
from brctl.model.sweeps.reach import UnreachedTogether
from brctl.playbook.recommend import recommend
from brctl.verdict.decide import DecisionContext, decide
from tests.verdict.test_belief import CONTEXT, seen

NODES = tuple(f"n{i}" for i in range(1, 9))
WAY = UnreachedTogether(NODES[:6], 8, {"no TCP connection": 6}, settle=("ip route get 10.0.0.1",))


def silence(
    nodes: tuple[str, ...] = NODES[:6], fault: FaultClass = FaultClass.NODE_FAILURE
) -> list[Evidence]:
    return [seen(node, fault, Weight.HINTS, source="ssh") for node in nodes]


def context(**more: object) -> DecisionContext:
    return replace(CONTEXT, unreached=WAY, **more)  # type: ignore[arg-type]  # keys of a DecisionContext


@pytest.mark.parametrize("stalled", [None, True, False])
@pytest.mark.parametrize("fault", [FaultClass.NODE_FAILURE, FaultClass.NETWORK_SWITCH])
def test_the_way_is_the_verdict_and_no_playbook_follows(
    fault: FaultClass, stalled: bool | None
) -> None:
    gaps = [Gap(Subject(node), "node", "connect-timed-out") for node in WAY.nodes]
    (found,) = map(recommend, decide(silence(fault=fault), gaps, context(stalled=stalled)))
    assert (found.fault, found.nodes, found.playbook) == (FaultClass.UNKNOWN, (), "")
    assert found.action is Action.COLLECT_MORE
    assert found.title == WAY.title
    assert found.settle == WAY.settle
    assert not found.alternatives


def test_what_else_speaks_against_an_unreached_node_names_it_neither() -> None:
    """The others wait for its ranks because nobody is asked there, or it is as far from them."""
    stuck = seen("n3", FaultClass.HANG_MISMATCH, source="job.ranks")
    (found,) = decide([*silence(), stuck], (), context())
    assert (found.fault, found.nodes) == (FaultClass.UNKNOWN, ())


def test_a_fault_on_a_node_that_answers_is_still_named() -> None:
    """Beside it stands that most others were not reached."""
    (found,) = decide([*silence(), seen("n7")], (), context())
    assert found.nodes == ("n7",)
    assert any(item.kind == "controller.way" for item in found.evidence)


def test_keys_that_most_nodes_refuse_are_the_way_as_well() -> None:
    """No silence is held against anybody there, and yet it is the same trouble."""
    gaps = [Gap(Subject(node), "node", "authentication-failed") for node in WAY.nodes]
    (found,) = decide([], gaps, context())
    assert found.title == WAY.title


def test_a_leaf_that_explains_all_of_them_is_the_leaf() -> None:
    leaves = dict.fromkeys(WAY.nodes, "leaf-1") | dict.fromkeys(NODES[6:], "leaf-2")
    (found,) = decide(silence(), (), context(leaves=leaves))
    assert (found.fault, found.nodes) == (FaultClass.NETWORK_SWITCH, ())


def test_silence_across_leaves_is_the_way() -> None:
    leaves = {node: f"leaf-{i // 2}" for i, node in enumerate(NODES)}
    (found,) = decide(silence(), (), context(leaves=leaves))
    assert (found.title, found.nodes) == (WAY.title, ())


def test_silence_of_few_is_as_it_was() -> None:
    (found,) = decide([seen("n3", FaultClass.NODE_FAILURE, source="ssh")], (), CONTEXT)
    assert found.nodes == ("n3",)
