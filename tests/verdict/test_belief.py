"""Beliefs: a conviction decides, hints add up, victims stay silent, roots explain symptoms."""

from dataclasses import replace
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.evidence_kinds import SLOW_LOADER
from brctl.model.fault import FaultClass
from brctl.model.fault_catalogue import CATALOGUE
from brctl.playbook.recommend import recommend
from brctl.verdict.belief import weigh
from brctl.verdict.decide import DecisionContext, decide

NOW = datetime(2026, 1, 1, 3, 2, tzinfo=UTC)
CONTEXT = DecisionContext(decided_at=NOW, job="llm", job_step=7, stalled=True)


def seen(
    node: str,
    fault: FaultClass = FaultClass.GPU_LOST,
    weight: Weight = Weight.CONVICTS,
    source: str = "gpu.xid",
    role: Role = Role.ROOT,
) -> Evidence:
    return Evidence("kind", Subject(node), weight, fault, role, source, f"{fault} on {node}")


EVIDENCE = st.builds(
    seen,
    st.sampled_from(["n1", "n2", "n3"]),
    st.sampled_from(sorted(FaultClass)),
    st.sampled_from(sorted(Weight)),
    st.sampled_from(["gpu.xid", "gpu.ecc", "job.ranks"]),
    st.sampled_from(sorted(Role)),
)


@pytest.mark.parametrize(
    ("items", "low", "high"),
    [
        ([seen("n1", FaultClass.PCIE)], 0.92, 0.97),
        ([seen("n1", FaultClass.PCIE, Weight.HINTS)], 0.25, 0.4),
        ([seen("n1", FaultClass.PCIE, Weight.HINTS, s) for s in ("a", "b")], 0.75, 0.85),
        ([seen("n1", FaultClass.PCIE, Weight.HINTS, "a")] * 2, 0.25, 0.4),
    ],
)
def test_weights_mean_what_the_table_says(items: list[Evidence], low: float, high: float) -> None:
    """One source counts once however often it speaks; independent hints add up."""
    (belief,) = weigh(items).values()
    assert low <= belief <= high


@given(st.lists(EVIDENCE, max_size=12), st.randoms())
def test_order_never_matters(items: list[Evidence], rng: Random) -> None:
    """Shuffling the evidence never changes the verdicts."""
    shuffled = list(items)
    rng.shuffle(shuffled)
    assert decide(items, (), CONTEXT) == decide(shuffled, (), CONTEXT)


@given(st.lists(EVIDENCE, max_size=10), st.sampled_from(["n1", "n2"]))
def test_clearing_never_rescues_a_convicted_node(items: list[Evidence], node: str) -> None:
    convicted = [*items, seen(node)]
    clearing = [seen(node, weight=Weight.CLEARS, source=f"check{i}") for i in range(20)]
    before = weigh(convicted)
    after = weigh([*convicted, *clearing])
    assert after == before


@given(st.lists(EVIDENCE, max_size=12))
def test_renaming_nodes_renames_the_verdict_and_nothing_else(items: list[Evidence]) -> None:
    renamed = [replace(e, subject=Subject("x" + e.subject.node)) for e in items]
    before, after = decide(items, (), CONTEXT), decide(renamed, (), CONTEXT)
    assert [(v.fault, v.probability) for v in before] == [(v.fault, v.probability) for v in after]
    assert [tuple("x" + n for n in v.nodes) for v in before] == [v.nodes for v in after]


def test_victims_never_name_a_node() -> None:
    victims = [seen(f"n{i}", FaultClass.NETWORK_ETH, role=Role.VICTIM) for i in range(8)]
    (verdict,) = decide(victims, (), CONTEXT)
    assert verdict.fault is FaultClass.UNKNOWN


def test_a_lost_gpu_explains_its_rank_and_its_peers() -> None:
    """The crash of the rank and the timeouts of the others follow; only the GPU is named."""
    items = [
        seen("n3"),
        seen("n3", FaultClass.USER_CODE, Weight.CONVICTS, "log"),
        seen("n5", FaultClass.NETWORK_ETH, Weight.CONVICTS, "log"),
        seen("n3", FaultClass.HANG_MISMATCH, Weight.CONVICTS, "job.ranks"),
    ]
    (verdict,) = decide(items, (), CONTEXT)
    assert (verdict.fault, verdict.nodes) == (FaultClass.GPU_LOST, ("n3",))
    assert recommend(verdict).playbook == "swap-and-resume"


def test_two_bad_nodes_are_both_found() -> None:
    (verdict,) = decide([seen("n3"), seen("n5")], (), CONTEXT)
    assert verdict.nodes == ("n3", "n5")


def test_silence_is_unknown_and_never_no_fault() -> None:
    """Nothing found with something unseen, or with a job that stands still, is not health."""
    gap = Gap(Subject("n1"), "gpu.ecc", "timed out after 10 s")
    calm = DecisionContext(decided_at=NOW, job="llm", stalled=False)
    clear = seen("n1", weight=Weight.CLEARS)
    faults = [
        decide([], (), calm)[0].fault,
        decide([clear], [gap], calm)[0].fault,
        decide([clear], (), CONTEXT)[0].fault,
        decide([clear], (), calm)[0].fault,
    ]
    assert faults == [FaultClass.UNKNOWN] * 3 + [FaultClass.NO_FAULT]


def test_every_fault_class_has_a_row() -> None:
    assert set(CATALOGUE) == set(FaultClass)


@pytest.mark.parametrize(
    ("stalled", "first"),
    [
        (True, FaultClass.NODE_FAILURE),
        (None, FaultClass.NODE_FAILURE),
        (False, FaultClass.GPU_SLOW),
    ],
)
def test_what_keeps_a_job_from_running_comes_before_what_slows_it(
    stalled: bool | None, first: FaultClass
) -> None:
    """A slow GPU, however sure, is no reason why a job stands still."""
    slow = [seen("n1", FaultClass.GPU_SLOW, source=source) for source in ("gpu.gemm", "gpu.clocks")]
    dead = [seen("n2", FaultClass.NODE_FAILURE, Weight.HINTS, s) for s in ("ssh", "bmc", "peers")]
    verdicts = decide([*slow, *dead], (), DecisionContext(NOW, job="llm", stalled=stalled))
    assert {v.fault for v in verdicts} == {FaultClass.GPU_SLOW, FaultClass.NODE_FAILURE}
    assert verdicts[0].fault is first


@pytest.mark.parametrize("slow", [FaultClass.DATA_LOADER, FaultClass.STRAGGLER_SLOW])
def test_what_a_job_found_in_its_own_numbers_comes_before_what_slows_it(slow: FaultClass) -> None:
    """However sure the slow loader: two sources against one, and a rarer class besides."""
    late = [seen("", slow, source=source) for source in ("job.ranks", "job.loader")]
    late = [replace(item, kind=SLOW_LOADER) for item in late]
    wrong = seen("n3", FaultClass.SILENT_CORRUPTION, source="job.ranks")
    runs = DecisionContext(NOW, job="llm", stalled=False)
    found = decide([*late, wrong], (), runs)
    assert [v.fault for v in found] == [FaultClass.SILENT_CORRUPTION, slow]
    assert found[0].probability < found[1].probability
    hinted = decide([*late, replace(wrong, weight=Weight.HINTS)], (), runs)
    assert hinted[0].fault is slow
