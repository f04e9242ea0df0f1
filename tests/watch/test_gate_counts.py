"""How far each gate is used, beside what the gates themselves say to the next verdict."""

from dataclasses import replace
from datetime import timedelta

from brctl.model.fault import FaultClass
from brctl.model.watch.policy import WatchLimits
from brctl.model.watch.state import WatchAct, WatchState
from brctl.watch.gate_counts import GateCount, gate_counts, nodes_taken
from tests.fakes.nodes import NOW

LIMITS = WatchLimits()
IDLE = WatchState(NOW - timedelta(hours=3))


def act(minutes_ago: float, *nodes: str, job: str = "llm") -> WatchAct:
    at = NOW - timedelta(minutes=minutes_ago)
    return WatchAct(at, "V-1", FaultClass.GPU_LOST, nodes, job, 100, 7)


def counts(state: WatchState, known: int = 128) -> dict[str, GateCount]:
    return {c.gate: c for c in gate_counts(state, LIMITS, known, ("change-freeze",), NOW)}


def test_a_watcher_that_did_nothing_has_every_gate_open() -> None:
    found = counts(IDLE)
    assert not any(count.shut for count in found.values())
    assert found["breaker"].text == "0 of 3 nodes in 5m00, 0 of 7 nodes in 1d00h"
    assert found["attempts"].text == "none of 2 a node and fault in 24 h"
    assert found["restarts"].text == "none of 3 in 30m00 without 10 new steps"
    assert found["freeze"].text == "change-freeze"


def test_what_was_done_is_counted_in_each_window() -> None:
    found = counts(replace(IDLE, acts=(act(90, "n1"), act(4, "n1"), act(2, "n2", "n3"))))
    assert found["breaker"] == GateCount(
        "breaker", "3 of 3 nodes in 5m00, 3 of 7 nodes in 1d00h", shut=True
    )
    assert found["attempts"].text.startswith("n1 (gpu-lost) 2, n2 (gpu-lost) 1")
    assert found["attempts"].shut
    assert found["restarts"].text == "llm 2 of 3 in 30m00 without 10 new steps"


def test_acts_from_before_a_person_closed_the_breaker_do_not_count_for_it() -> None:
    state = replace(IDLE, acts=(act(4, "n1"), act(2, "n2")))
    closed = replace(state, breaker_since=NOW - timedelta(minutes=3))
    assert nodes_taken(state, LIMITS.breakers[0], NOW) == {"n1", "n2"}
    assert nodes_taken(closed, LIMITS.breakers[0], NOW) == {"n2"}


def test_an_open_breaker_a_fresh_start_and_a_persons_hand_are_shut() -> None:
    state = WatchState(
        NOW - timedelta(minutes=4),
        breaker_open="2026-07-05T03:00:00Z: 4 of 3 nodes",
        quiet={"n4": NOW + timedelta(hours=1), "n5": NOW - timedelta(hours=1)},
    )
    found = counts(state)
    assert {gate for gate, count in found.items() if count.shut} == {"start-up", "breaker", "quiet"}
    assert found["start-up"].text == "up for 4m00, only observing for the first 10m00"
    assert found["quiet"].text.startswith("n4 left alone")


def test_a_fleet_of_which_nobody_knows_the_size_has_its_breaker_shut() -> None:
    """No node may be taken of none; the gate says the same."""
    assert counts(IDLE, known=0)["breaker"].shut
