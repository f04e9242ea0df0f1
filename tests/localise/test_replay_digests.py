"""Digests of replays: who is wrong, from all rounds of a search."""

from collections.abc import Sequence

import pytest

from brctl.localise.replay_digests import judge_digests, right_digest
from brctl.model.localisation import GroupResult

A, B, C, D = (("n1", "n2"), ("n3", "n4"), ("n1", "n3"), ("n2", "n4"))


def told(*digests: str, kind: str = "") -> tuple[GroupResult, ...]:
    """One result a group, as a runner gives it."""
    return tuple(GroupResult(1, 0, digests=(digest,), kind=kind) for digest in digests)


def failed(rounds: Sequence[tuple[GroupResult, ...]]) -> list[list[int | None]]:
    return [[result.failed for result in results] for results in rounds]


def test_the_odd_digest_among_groups_of_one_size_fails() -> None:
    """A tie says nothing about anybody, and another size is another sum."""
    (most,) = judge_digests([((A, B, C), told("a", "a", "b"))])
    assert [(r.failed, r.differs) for r in most] == [(0, 0), (0, 0), (1, 1)]
    (tie,) = judge_digests([((A, B), told("a", "b"))])
    assert [(r.failed, r.apart) for r in tie] == [(None, True), (None, True)]
    (sizes,) = judge_digests([((A, B, ("n5",)), told("a", "a", "b"))])
    assert [r.failed for r in sizes] == [0, 0, 0]


def test_a_round_that_told_nobody_apart_is_judged_by_later_ones() -> None:
    """Two groups differ in the first round; in later ones all sound groups agree."""
    rounds = [((A, B), told("x", "a")), ((C, D), told("a", "a")), ((A, B), told("a", "a"))]
    assert failed(judge_digests(rounds)) == [[1, 0], [0, 0], [0, 0]]
    again = judge_digests([(r[0], j) for r, j in zip(rounds, judge_digests(rounds), strict=True)])
    assert failed(again) == [[1, 0], [0, 0], [0, 0]]


def test_who_repeats_itself_is_right_where_no_other_digest_comes_twice() -> None:
    """Two groups a phase and a machine that is wrong in every call: half of them each time."""
    phases = [((A, B), told("x", "a")), ((C, D), told("y", "a"))]
    assert failed(judge_digests(phases)) == [[None, None], [None, None]]
    more = [((A, B), told("z", "a")), ((C, D), told("w", "a"))]
    assert failed(judge_digests([*phases, *more])) == [[1, 0]] * 4


@pytest.mark.parametrize(
    "runs",
    [
        [(A, "a"), (A, "a"), (B, "x"), (B, "x")],
        [(A, "a"), (A, "b"), (B, "c"), (B, "d")],
        [(A, "a"), (A, "x"), (B, "a"), (B, "y")],
        [(A, "a"), (A, "a"), (B, "x"), (B, "y")],
        [(A, "a"), (B, "a"), (C, "x"), (D, "y")],
    ],
    ids=["both repeat", "nothing repeats", "each now and then", "one group alone", "seen once"],
)
def test_what_could_as_well_be_a_replay_that_is_never_equal_convicts_nobody(
    runs: list[tuple[tuple[str, ...], str]],
) -> None:
    """Half of the digests agree: without more nobody knows which half computes rightly."""
    assert right_digest(runs) == ""


def test_bits_are_compared_within_one_kind_of_node() -> None:
    """A group of a kind of its own is neither right nor wrong; its bad end still counts."""
    others = told("a", "a", kind="H100")
    (found,) = judge_digests([((A, B, C), (*others, *told("b", kind="A100")))])
    assert [r.failed for r in found] == [0, 0, None]
    ended = GroupResult(1, 1, kind="")
    (bad,) = judge_digests([((A, B, C), (*others, ended))])
    assert bad[2] == ended
