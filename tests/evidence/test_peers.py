"""The fleet convicts its odd one, and never when it has no majority."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.evidence.assess import Assessment
from brctl.evidence.burnin import not_compared
from brctl.evidence.peers import assess_peers
from brctl.model.command import Outcome
from brctl.model.evidence import Weight
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value

RATE = "gpu.gemm.bf16_tflop_per_s"
DIGEST = "gpu.gemm.bf16_digest"


def fleet(kind: str, values: list[Value]) -> list[NodeReport]:
    return [
        NodeReport(
            f"n{i}",
            Outcome.ANSWERED,
            (CheckResult("gpu.gemm", ProbeStatus.MEASURED, (Measurement(kind, "gpu:0", v),)),),
        )
        for i, v in enumerate(values)
    ]


def blamed(found: Assessment) -> list[str]:
    return [e.subject.node for e in found.evidence if e.weight is not Weight.CLEARS]


@given(st.lists(st.floats(640, 660), min_size=4, max_size=40), st.data())
def test_one_straggler_is_the_only_one_blamed(rates: list[float], data: st.DataObject) -> None:
    """A GPU at half speed is found among any healthy fleet, and no healthy one beside it."""
    slow = data.draw(st.integers(0, len(rates) - 1))
    values: list[Value] = [320.0 if i == slow else rate for i, rate in enumerate(rates)]
    assert blamed(assess_peers(fleet(RATE, values))) == [f"n{slow}"]


@given(st.lists(st.floats(640, 660), min_size=3, max_size=40))
def test_a_healthy_fleet_blames_nobody(rates: list[float]) -> None:
    """Noise of three percent makes no outlier."""
    assert blamed(assess_peers(fleet(RATE, list(rates)))) == []


def test_two_cannot_outvote_each_other() -> None:
    """Two that differ give a gap, not a suspect."""
    for kind, values in ((RATE, [650.0, 320.0]), (DIGEST, ["aa", "bb"])):
        found = assess_peers(fleet(kind, list(values)))
        assert found.evidence == ()
        assert len(found.gaps) == 1


def test_an_even_split_convicts_nobody() -> None:
    """Two against two is no majority."""
    found = assess_peers(fleet(DIGEST, ["aa", "aa", "bb", "bb"]))
    assert found.evidence == ()
    assert "no majority" in found.gaps[0].why


def test_the_minority_digest_is_convicted() -> None:
    """Five GPUs agree bit for bit, the sixth does not."""
    found = assess_peers(fleet(DIGEST, ["aa", "aa", "bb", "aa", "aa", "aa"]))
    assert blamed(found) == ["n2"]
    assert {e.weight for e in found.evidence if e.subject.node == "n2"} == {Weight.CONVICTS}


def test_only_equal_hardware_is_compared() -> None:
    """An older part is slower and not at fault."""
    reports = fleet(RATE, [650.0, 651.0, 649.0, 310.0, 312.0, 311.0])
    old = {"n3", "n4", "n5"}
    assert blamed(assess_peers(reports, lambda node: "a100" if node in old else "h100")) == []


@pytest.mark.parametrize("junk", [True, "fast", float("nan")])
def test_junk_is_no_reading(junk: Value) -> None:
    """A value of another type neither counts as a vote nor is blamed."""
    assert blamed(assess_peers(fleet(RATE, [650.0, 650.0, 650.0, junk]))) == []


def modelled(node: str, kind: str, digest: str) -> NodeReport:
    """A node whose reference model gave this digest on this kind of part and library."""
    rows = (
        Measurement("numerics.minigpt.kind", "gpu:0", kind),
        Measurement("numerics.minigpt.dense_digest", "gpu:0", digest),
    )
    found = CheckResult("numerics.minigpt", ProbeStatus.MEASURED, rows)
    return NodeReport(node, Outcome.ANSWERED, (found,))


def test_bits_are_asked_to_be_equal_only_within_one_kind_of_part_and_library() -> None:
    """Another library rounds otherwise and is no fault; within each kind the odd one is named."""
    old = [modelled(f"a{i}", "torch 2.3", "aa") for i in range(3)]
    new = [modelled(f"b{i}", "torch 2.4", "bb") for i in range(3)]
    assert blamed(assess_peers([*old, *new])) == []
    odd = modelled("b3", "torch 2.4", "aa")
    assert blamed(assess_peers([*old, *new, odd])) == ["b3"]


def test_the_only_node_of_its_kind_was_compared_with_nobody_and_that_is_said() -> None:
    """Nothing speaks against it, and nothing for it."""
    fleet = [*(modelled(f"a{i}", "avx2", "aa") for i in range(3)), modelled("b0", "avx512", "bb")]
    found = assess_peers(fleet)
    assert [(gap.subject.node, "only one" in gap.why) for gap in found.gaps] == [("b0", True)]
    assert blamed(found) == []
    assert "b0" not in {item.subject.node for item in found.evidence}


def test_two_whose_bits_differ_have_not_passed_a_comparison() -> None:
    """One of them is wrong and nobody knows which; a third that agrees with one frees that one."""
    fleet = [modelled("a", "avx2", "aa"), modelled("b", "avx2", "bb")]
    assert set(not_compared(fleet, assess_peers(fleet))) == {"a", "b"}
    fleet.append(modelled("c", "avx2", "aa"))
    assert not_compared(fleet, assess_peers(fleet)) == {}


def test_what_is_undecided_of_one_kind_is_not_told_of_another() -> None:
    """Two that agree stand beside two that differ."""
    fleet = [modelled("a", "avx2", "aa"), modelled("b", "avx2", "bb")]
    fleet += [modelled("c", "avx512", "cc"), modelled("d", "avx512", "cc")]
    assert set(not_compared(fleet, assess_peers(fleet))) == {"a", "b"}
