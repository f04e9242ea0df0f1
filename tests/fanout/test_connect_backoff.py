"""A dead node costs its whole connect deadline once, not once for every question."""

import pytest

from brctl.fanout.connect_backoff import AGAIN_S, CROWD, REMEMBER_S, SAME_S, ConnectBackoff


def test_the_second_wait_is_short_and_says_so() -> None:
    """The words name both waits, so that nobody takes 1.5 s for the whole evidence."""
    silence = ConnectBackoff(10.0)
    assert silence.deadline_s("n3", 100.0) == 10.0
    assert silence.keep("n3", 10.0, 110.0) == "within 10 s"
    assert silence.deadline_s("n3", 112.0) == AGAIN_S[0]
    actual = silence.keep("n3", AGAIN_S[0], 113.5)
    assert actual == "within 1.5 s, nor within 10 s, 4 s ago"
    assert [silence.deadline_s("n3", 114.0), silence.keep("n3", 0.5, 114.5)] == [
        AGAIN_S[1],
        "within 0.5 s, nor within 10 s, 4 s ago",
    ]
    assert silence.deadline_s("n3", 115.0) == AGAIN_S[1]
    assert silence.deadline_s("n4", 112.0) == 10.0


def test_who_waits_for_the_same_connection_hears_its_end_at_once() -> None:
    """Two questions to one dead node cost one wait; a question asked later is tried."""
    silence = ConnectBackoff(10.0)
    silence.keep("n3", 10.0, 110.0)
    assert silence.meanwhile("n3", 100.1) == "within 10 s"
    assert silence.meanwhile("n3", 110.1) == ""
    assert silence.meanwhile("n4", 100.1) == ""


def test_a_node_that_another_process_found_silent_is_waited_for_as_if_it_had_been_here() -> None:
    """A run is a process of its own: it waited the whole deadline for the node it was made for."""
    silence = ConnectBackoff(10.0)
    silence.remember("n3", 96.0)
    assert silence.meanwhile("n3", 100.0) == ""
    assert silence.deadline_s("n3", 100.0) == AGAIN_S[1]
    assert silence.keep("n3", 0.5, 100.5) == "within 0.5 s, nor within 10 s, 4 s ago"
    assert silence.deadline_s("n3", 96.0 + REMEMBER_S) == 10.0


def test_a_node_that_is_silent_again_and_again_is_not_asked_thrice_a_second() -> None:
    """The third wait counts for the questions of the next two seconds; no earlier one does."""
    silence = ConnectBackoff(10.0)
    for waited_s, at in ((10.0, 10.0), (1.5, 12.0)):
        silence.keep("n3", waited_s, at)
        assert silence.meanwhile("n3", at + 0.1) == ""
    silence.keep("n3", 0.5, 13.0)
    assert silence.meanwhile("n3", 13.0 + SAME_S) == "within 0.5 s, nor within 10 s, 3 s ago"
    assert silence.meanwhile("n3", 13.1 + SAME_S) == ""


def test_a_short_wait_does_not_lengthen_the_memory() -> None:
    """Every minute somebody waits the whole deadline again, however often it is asked."""
    silence = ConnectBackoff(10.0)
    silence.keep("n3", 10.0, 0.0)
    silence.keep("n3", AGAIN_S[0], REMEMBER_S - 1)
    assert silence.deadline_s("n3", REMEMBER_S) == 10.0


def test_a_node_that_came_back_is_like_any_other() -> None:
    """A connection wipes the memory out."""
    silence = ConnectBackoff(10.0)
    silence.keep("n3", 10.0, 0.0)
    silence.forget("n3")
    assert silence.deadline_s("n3", 1.0) == 10.0


@pytest.mark.parametrize("deadline_s", [0.2, 1.5])
def test_a_deadline_that_is_short_anyway_stays(deadline_s: float) -> None:
    """Asking again never waits longer than the site allows."""
    silence = ConnectBackoff(deadline_s)
    silence.keep("n3", deadline_s, 0.0)
    assert silence.deadline_s("n3", 1.0) == deadline_s
    assert silence.keep("n3", deadline_s, 2.0) == f"within {deadline_s:g} s"


def a_silent_crowd() -> ConnectBackoff:
    silence = ConnectBackoff(10.0)
    for number in range(CROWD):
        silence.keep(f"n{number}", 10.0, 10.0)
    return silence


def test_after_a_crowd_in_vain_further_nodes_are_waited_for_shortly() -> None:
    """Five hundred nodes behind a cut route cost seconds more than fifty."""
    silence = a_silent_crowd()
    assert silence.deadline_s("x1", 11.0) == AGAIN_S[0]
    said = silence.keep("x1", AGAIN_S[0], 12.5)
    assert said == f"within 1.5 s, nor did {CROWD} nodes before it give one"
    for number in range(2 * CROWD):
        silence.keep(f"y{number}", AGAIN_S[0], 13.0)
    assert silence.deadline_s("z1", 14.0) == AGAIN_S[1]


def test_one_answer_ends_the_short_waits() -> None:
    """Then it is not the way to all of them, and every node has its whole deadline again."""
    silence = a_silent_crowd()
    silence.forget("n999")
    assert silence.deadline_s("x1", 11.0) == 10.0


def test_a_crowd_is_forgotten_like_a_node() -> None:
    assert a_silent_crowd().deadline_s("x1", 10.0 + REMEMBER_S) == 10.0


def test_one_dead_node_is_no_crowd_however_often_it_is_asked() -> None:
    silence = ConnectBackoff(10.0)
    for _ in range(2 * CROWD):
        silence.keep("n3", 10.0, 10.0)
    assert silence.deadline_s("x1", 11.0) == 10.0
