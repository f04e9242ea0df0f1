"""What a cause hides and what it does not, and evidence that cannot all hold."""

from dataclasses import replace

import pytest

from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import DRIVER_HANG, SILENT_NODE
from brctl.model.fault import FaultClass
from brctl.model.verdict import Confidence
from brctl.verdict.decide import DecisionContext, decide
from tests.verdict.test_belief import CONTEXT, NOW, seen

HANG, DEAD = FaultClass.HANG_MISMATCH, FaultClass.NODE_FAILURE
LEAVES = {"n1": "leaf-1", "n2": "leaf-1", "n3": "leaf-2", "n4": "leaf-2"}
BEHIND = replace(CONTEXT, leaves=LEAVES)


def silent(node: str) -> Evidence:
    return seen(node, DEAD, source="ssh")


def test_a_rank_stuck_in_its_own_code_is_named_beside_a_dead_node() -> None:
    """Two things broke: the dead node makes others wait, and the stuck rank does not wait."""
    stuck = seen("n5", HANG, source="job.ranks")
    found = decide([silent("n3"), stuck], (), CONTEXT)
    assert {(v.fault, v.nodes) for v in found} == {(DEAD, ("n3",)), (HANG, ("n5",))}


def test_a_rank_that_only_hints_is_explained_by_the_dead_node_it_waits_for() -> None:
    waits = seen("n5", HANG, Weight.HINTS, "job.stacks")
    (verdict,) = decide([silent("n3"), waits], (), CONTEXT)
    assert (verdict.fault, verdict.nodes) == (DEAD, ("n3",))


def test_sources_that_name_different_nodes_convict_none_of_them() -> None:
    """The phases name one node and the stacks another: both are leads, as one is wrong."""
    torn = [seen("n3", HANG, source="job.ranks"), seen("n5", HANG, source="job.stacks")]
    (verdict,) = decide(torn, (), CONTEXT)
    assert (verdict.fault, verdict.nodes) == (HANG, ())
    assert verdict.probability < 0.5
    assert {a.nodes for a in verdict.alternatives} == {("n3",), ("n5",)}


def test_sources_that_agree_on_a_node_convict_it() -> None:
    agree = [seen("n3", HANG, source="job.ranks"), seen("n3", HANG, source="job.stacks")]
    (verdict,) = decide(agree, (), CONTEXT)
    assert verdict.nodes == ("n3",)


def test_equals_name_nobody_whatever_their_names() -> None:
    """A name is no evidence: the class stands, the nodes are leads."""
    hints = [seen(node, HANG, Weight.HINTS) for node in ("n1", "n2", "n3")]
    (verdict,) = decide(hints, (), CONTEXT)
    assert (verdict.fault, verdict.nodes) == (HANG, ())
    assert {a.nodes[0] for a in verdict.alternatives} == {"n1", "n2", "n3"}


def test_equals_of_different_classes_are_unknown_with_both_as_leads() -> None:
    hints = [
        seen("n1", FaultClass.NVLINK, Weight.HINTS),
        seen("n2", FaultClass.GPU_SLOW, Weight.HINTS),
    ]
    (verdict,) = decide(hints, (), CONTEXT)
    assert verdict.fault is FaultClass.UNKNOWN
    assert {a.nodes for a in verdict.alternatives} == {("n1",), ("n2",)}


def test_every_node_behind_a_leaf_silent_is_the_leaf() -> None:
    (verdict,) = decide([silent("n3"), silent("n4"), seen("n1", weight=Weight.CLEARS)], (), BEHIND)
    assert (verdict.fault, verdict.nodes) == (FaultClass.NETWORK_SWITCH, ())
    assert any(e.subject == Subject("", "leaf:leaf-2") for e in verdict.evidence)


def test_a_silent_node_beside_an_answering_one_of_its_leaf_is_that_node() -> None:
    (verdict,) = decide([silent("n3")], (), BEHIND)
    assert (verdict.fault, verdict.nodes) == (DEAD, ("n3",))


def test_silence_behind_every_leaf_is_no_leaf() -> None:
    """Then it may as well be the way from here."""
    found = decide([silent(node) for node in LEAVES], (), BEHIND)
    assert FaultClass.NETWORK_SWITCH not in {verdict.fault for verdict in found}


def test_one_node_alone_with_what_may_be_everybodys_is_named() -> None:
    """A read-only directory of one node, which the others can write, is that node's."""
    storage = FaultClass.STORAGE_CHECKPOINT
    fine = [seen(node, storage, Weight.CLEARS, role=Role.CONTEXT) for node in ("n1", "n2")]
    (one,) = decide([seen("n3", storage), *fine], (), CONTEXT)
    assert one.nodes == ("n3",)
    (all_of_them,) = decide([seen("n3", storage), seen("n4", storage), *fine], (), CONTEXT)
    assert all_of_them.nodes == ()
    (nobody_else_looked,) = decide([seen("n3", storage)], (), CONTEXT)
    assert nobody_else_looked.nodes == ()


def test_a_clock_that_is_off_is_not_outvoted_by_the_clocks_of_others() -> None:
    """Sound clocks elsewhere, and sound versions, say nothing of this one."""
    clock = FaultClass.ENVIRONMENT_MISMATCH
    fine = [
        seen(f"n{i}", clock, Weight.CLEARS, source, Role.CONTEXT)
        for i in range(1, 9)
        for source in ("host.clock", "gpu.driver", "host.limits")
    ]
    off = seen("n3", clock, Weight.HINTS, "host.clock")
    calm = DecisionContext(decided_at=NOW, job="llm", stalled=False, usual_pace=True)
    (verdict,) = decide([off, *fine], (), calm)
    assert verdict.fault is clock


def test_an_end_without_a_word_is_a_lead_with_what_would_settle_it() -> None:
    killed = replace(
        seen("n3", FaultClass.UNKNOWN, Weight.HINTS, "job.ranks"), kind="job.rank.killed-first"
    )
    (verdict,) = decide([killed], (), CONTEXT)
    assert verdict.fault is FaultClass.UNKNOWN
    assert verdict.nodes == ()
    likeliest = verdict.alternatives[0]
    assert (likeliest.fault, likeliest.nodes) == (FaultClass.CPU_OOM, ("n3",))
    assert len(verdict.settle) == 2
    assert all("-w n3" in command for command in verdict.settle)


@pytest.mark.parametrize(
    ("full", "named"), [(("n1", "n2", "n3"), ()), (("n1", "n2"), ("n1", "n2"))]
)
def test_a_directory_that_is_full_everywhere_names_nobody(
    full: tuple[str, ...], named: tuple[str, ...]
) -> None:
    """It is shared; where one node has room, those that have none are named."""
    chain = [
        replace(
            seen(node, FaultClass.DISK_FULL, weight),
            source="host.disk", subject=Subject(node, "disk:/ckpt"),
        )
        for node in ("n1", "n2", "n3")
        for weight in [Weight.CONVICTS if node in full else Weight.CLEARS]
    ]  # fmt: skip
    (verdict,) = decide(chain, [], DecisionContext(decided_at=NOW))
    assert (verdict.fault, verdict.nodes) == (FaultClass.DISK_FULL, named)


@pytest.mark.parametrize(
    ("hanging", "check", "named"),
    [(2, "host.mounts", 2), (3, "host.mounts", 0), (3, "host.disk", 3)],
)
def test_three_clients_of_a_file_server_are_none_of_them_to_blame(
    hanging: int, check: str, named: int
) -> None:
    """One leaf had lost its way to the file servers, and each node behind it was named HIGH."""
    chain = [
        replace(
            seen(f"n{n}", FaultClass.STORAGE_CHECKPOINT, weight),
            source=check, subject=Subject(f"n{n}", "disk:/data"),
        )
        for n in range(9)
        for weight in [Weight.CONVICTS if n < hanging else Weight.CLEARS]
    ]  # fmt: skip
    (verdict,) = decide(chain, (), DecisionContext(decided_at=NOW))
    assert (verdict.fault, len(verdict.nodes)) == (FaultClass.STORAGE_CHECKPOINT, named)


@pytest.mark.parametrize(
    ("nodes", "waiting", "of_the_job", "said"),
    [
        (3, 3, 3, (FaultClass.NETWORK_SWITCH, 0)),
        (3, 2, 3, (FaultClass.NETWORK_IB, 2)),
        (2, 2, 2, (FaultClass.NETWORK_IB, 2)),
        (3, 3, 20, (FaultClass.NETWORK_IB, 3)),
        (3, 3, 0, (FaultClass.NETWORK_IB, 3)),
    ],
    ids=["all", "two of three", "both of two", "of the rest nobody read it", "no job"],
)
def test_what_all_nodes_have_alike_is_none_of_theirs(
    nodes: int, waiting: int, of_the_job: int, said: tuple[FaultClass, int]
) -> None:
    """Every port waited for a subnet manager that had died, and all nodes were named HIGH."""
    chain = [
        replace(
            seen(f"n{n}", FaultClass.NETWORK_IB, weight),
            source="fabric.ibport", subject=Subject(f"n{n}", "nic:mlx5_0"),
        )
        for n in range(nodes)
        for weight in [Weight.CONVICTS if n < waiting else Weight.CLEARS]
    ]  # fmt: skip
    ranks = {f"n{n}": (n,) for n in range(of_the_job)}
    (verdict,) = decide(chain, (), DecisionContext(decided_at=NOW, ranks=ranks))
    assert (verdict.fault, len(verdict.nodes)) == said


def test_two_ranks_that_hang_alike_are_both_named() -> None:
    """Two sources hint at each; that one name comes after the other hides neither."""
    hints = [
        seen(node, HANG, Weight.HINTS, source)
        for node in ("n2", "n3")
        for source in ("job.ranks", "flight-recorder")
    ]
    context = replace(CONTEXT, ranks={f"n{n}": (n - 1,) for n in range(1, 5)})
    (verdict,) = decide(hints, (), context)
    assert (verdict.fault, verdict.nodes) == (HANG, ("n2", "n3"))


def test_ranks_on_most_nodes_that_stand_elsewhere_name_none_of_them() -> None:
    hints = [
        seen(node, HANG, Weight.HINTS, source)
        for node in ("n1", "n2", "n3")
        for source in ("job.ranks", "flight-recorder")
    ]
    context = replace(CONTEXT, ranks={f"n{n}": (n - 1,) for n in range(1, 5)})
    (verdict,) = decide(hints, (), context)
    assert (verdict.fault, verdict.nodes) == (HANG, ())


def test_the_few_clocks_that_differ_are_all_named() -> None:
    off = [
        seen(n, FaultClass.ENVIRONMENT_MISMATCH, Weight.HINTS, "host.clock") for n in ("n2", "n5")
    ]
    fine = [
        seen(node, FaultClass.ENVIRONMENT_MISMATCH, Weight.CLEARS, "host.clock", Role.CONTEXT)
        for node in ("n1", "n3", "n4")
    ]
    (verdict,) = decide([*off, *fine], (), replace(CONTEXT, stalled=False))
    assert verdict.nodes == ("n2", "n5")


OF_A_JOB = replace(CONTEXT, ranks={"n3": (2,), "n4": (3,)})


def late_answers(node: str) -> list[Evidence]:
    """Each probe that asked the node's driver ran out of time; all others were on time."""
    return [
        replace(seen(node, FaultClass.DRIVER_FIRMWARE, Weight.HINTS, check), kind=DRIVER_HANG)
        for check in ("gpu.ecc", "gpu.clocks", "gpu.nvlink", "gpu.pcie", "gpu.devices")
    ]


def test_probes_that_wait_for_one_driver_are_one_witness() -> None:
    """Five late answers of one node are one sign, until a rank of that node is in trouble too."""
    driver, lost = FaultClass.DRIVER_FIRMWARE, FaultClass.GPU_LOST
    late = late_answers("n3")
    assert [v.nodes for v in decide([*late, seen("n4", lost)], (), OF_A_JOB)] == [("n4",)]
    stuck = seen("n3", HANG, source="job.ranks")
    assert decide([*late, stuck], (), OF_A_JOB)[0].fault is driver


def test_a_driver_that_answers_nobody_is_named_where_a_job_stands_still_for_nothing_else() -> None:
    """All ranks stand in the all-reduce and bear nothing out: five late answers were one hint."""
    (found,) = decide(late_answers("n3"), (), OF_A_JOB)
    assert (found.fault, found.nodes) == (FaultClass.DRIVER_FIRMWARE, ("n3",))
    assert found.confidence is Confidence.HIGH
    (doubted,) = decide(late_answers("n3"), (), replace(OF_A_JOB, stalled=False))
    assert doubted.confidence is Confidence.LOW
    on_two = decide([*late_answers("n3"), *late_answers("n4")], (), OF_A_JOB)
    assert {verdict.confidence for verdict in on_two} == {Confidence.LOW}


def test_a_hint_of_another_machine_folds_no_driver_that_hangs() -> None:
    """Elsewhere a GPU was warm: the five probes were one hint, and the wedged driver a guess."""
    warm = seen("n4", FaultClass.THERMAL_POWER, Weight.HINTS, "gpu.clocks")
    found = decide([*late_answers("n3"), warm], (), OF_A_JOB)[0]
    assert (found.fault, found.nodes) == (FaultClass.DRIVER_FIRMWARE, ("n3",))
    assert found.confidence is Confidence.HIGH
    in_trouble = seen("n4", HANG, Weight.HINTS, "job.ranks")
    for other in (in_trouble, *late_answers("n4")[:1]):
        folded = decide([*late_answers("n3"), other], (), OF_A_JOB)
        assert Confidence.HIGH not in {verdict.confidence for verdict in folded}


def silent_by(node: str, how: str) -> list[Evidence]:
    """A node that SSH did not reach, as a check of nodes and as its job has it."""
    fault = FaultClass.NODE_FAILURE
    return [
        replace(seen(node, fault, Weight.HINTS, "ssh"), kind=f"node.{how}"),
        replace(seen(node, fault, source="ssh"), kind=SILENT_NODE),
    ]


def test_a_node_that_refuses_logins_is_not_dead_beside_a_driver_that_hangs() -> None:
    """It was swapped at 0.95, and the job still hung for the driver."""
    found = decide([*late_answers("n3"), *silent_by("n4", "refused")], (), OF_A_JOB)
    assert found[0].nodes == ("n3",)
    assert not any("n4" in v.nodes and v.confidence is Confidence.HIGH for v in found)
    for evidence in (
        [*late_answers("n3"), *silent_by("n4", "connect-timed-out")],
        [*late_answers("n3"), *silent_by("n4", "command-timed-out")],
        [*late_answers("n3"), *silent_by("n4", "died-while-answering")],
        [*late_answers("n3")[:1], *silent_by("n4", "refused")],
        [*late_answers("n3"), *late_answers("n5"), *silent_by("n4", "refused")],
    ):
        assert decide(evidence, (), OF_A_JOB)[0].nodes == ("n4",)
