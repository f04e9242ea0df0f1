"""A verdict that blames no node still says which rank failed by itself, and where."""

from dataclasses import replace

from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import CLOCK_SKEW
from brctl.model.fault import FaultClass
from brctl.model.verdict import Place
from brctl.playbook.recommend import recommend
from brctl.verdict.decide import decide
from brctl.view.documents import verdict_document
from brctl.view.verdict import summary_lines
from tests.verdict.test_belief import CONTEXT, seen

NODES = tuple(f"n{i}" for i in range(1, 11))
JOB = replace(CONTEXT, ranks={node: (number,) for number, node in enumerate(NODES)})
RAISED = replace(
    seen("", FaultClass.USER_CODE, source="rank-00002.log"), subject=Subject("", "code:job")
)


def ended(node: str, rank: int, fault: FaultClass = FaultClass.USER_CODE) -> Evidence:
    hint = seen(node, fault, Weight.HINTS, "job.ranks")
    return replace(hint, subject=Subject(node, f"rank:{rank}"), kind="job.rank.exited")


def test_a_rank_that_raised_is_the_place_and_its_machine_is_not_blamed() -> None:
    (verdict,) = decide([RAISED, ended("n3", 2)], (), JOB)
    assert (verdict.fault, verdict.nodes) == (FaultClass.USER_CODE, ())
    assert verdict.places == (Place("n3", (2,)),)


def test_the_place_leads_to_no_eviction() -> None:
    (verdict,) = decide([RAISED, ended("n3", 2)], (), JOB)
    assert recommend(verdict).playbook == "restart-in-place"


def test_what_many_nodes_have_has_no_place() -> None:
    """Every rank raised the same: the code did, and it began nowhere."""
    everybody = [ended(node, number) for number, node in enumerate(NODES)]
    (verdict,) = decide([RAISED, *everybody], (), JOB)
    assert verdict.places == ()


def test_ranks_that_lost_a_peer_are_no_place() -> None:
    victim = replace(ended("n4", 3), role=Role.VICTIM)
    (verdict,) = decide([RAISED, ended("n3", 2), victim], (), JOB)
    assert verdict.places == (Place("n3", (2,)),)


def test_a_verdict_that_names_nodes_needs_no_place() -> None:
    (verdict,) = decide([seen("n3", FaultClass.HANG_MISMATCH, source="job.ranks")], (), JOB)
    assert (verdict.nodes, verdict.places) == (("n3",), ())


def test_an_unknown_end_has_the_place_where_it_began() -> None:
    killed = replace(ended("n3", 2, FaultClass.UNKNOWN), kind="job.rank.killed-first")
    (verdict,) = decide([killed], (), JOB)
    assert verdict.fault is FaultClass.UNKNOWN
    assert verdict.places == (Place("n3", (2,)),)


def test_people_and_programs_are_told_the_place() -> None:
    (verdict,) = decide([RAISED, ended("n3", 2)], (), JOB)
    assert "where:  it came to light on rank 2 on n3; no machine is blamed" in summary_lines(
        verdict
    )
    document = verdict_document(verdict)
    assert document["places"] == [{"node": "n3", "ranks": [2]}]
    assert document["suspects"]["nodes"] == []


def test_a_clock_that_is_off_is_told_as_a_clock_with_what_to_ask_it() -> None:
    """It was told as software versions that do not fit; other drift still is."""
    clocks = [
        replace(seen(node, FaultClass.ENVIRONMENT_MISMATCH, weight, "host.clock"), kind=CLOCK_SKEW)
        for node, weight in [(n, Weight.HINTS if n == "n3" else Weight.CLEARS) for n in NODES]
    ]
    (verdict,) = decide(clocks, (), JOB)
    assert (verdict.title, verdict.nodes) == ("a node's clock is off", ("n3",))
    assert verdict.settle[0].startswith("brctl run -w n3 -- 'chronyc tracking")
    (drift,) = decide([replace(item, kind="host.versions.kernel") for item in clocks], (), JOB)
    assert (drift.title, drift.settle) == ("software or settings of the nodes do not fit", ())
