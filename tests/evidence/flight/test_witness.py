"""Suspects of the flight recorders become evidence against their nodes, and no others."""

from brctl.evidence.flight.node_evidence import assess_flight
from brctl.model.evidence import Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.hang import FlightRecorderAnalysis, SuspectRank, SuspectReason


def suspect(rank: int, node: str, reason: SuspectReason = SuspectReason.MISMATCH) -> SuspectRank:
    return SuspectRank(rank, reason, "0", 12, (0, 3), f"rank {rank} is elsewhere", node)


def found(*suspects: SuspectRank) -> FlightRecorderAnalysis:
    return FlightRecorderAnalysis(tuple(range(4)), suspects, (0, 3), common_cause=False)


def test_one_node_that_others_wait_for_is_convicted() -> None:
    (item,) = assess_flight(found(suspect(1, "n2")))
    assert (item.subject.node, item.subject.device) == ("n2", "rank:1")
    assert (item.fault, item.weight) == (FaultClass.HANG_MISMATCH, Weight.CONVICTS)
    assert item.source == "flight-recorder"
    assert "rank 1 is elsewhere" in item.text


def test_ranks_of_one_node_still_convict_it() -> None:
    items = assess_flight(found(suspect(2, "n2"), suspect(3, "n2")))
    assert {item.weight for item in items} == {Weight.CONVICTS}


def test_several_nodes_are_hinted_at() -> None:
    """A tie suspects both sides, and one of them is innocent."""
    items = assess_flight(found(suspect(1, "n2"), suspect(2, "n3")))
    assert {item.weight for item in items} == {Weight.HINTS}


def test_a_missing_dump_convicts_nobody() -> None:
    """It may only not have been fetched."""
    (item,) = assess_flight(found(suspect(1, "n2", SuspectReason.NO_DUMP)))
    assert item.weight is Weight.HINTS


def test_no_suspects_and_unplaced_suspects_say_nothing() -> None:
    assert assess_flight(found()) == ()
    assert assess_flight(found(suspect(1, ""))) == ()
