"""Pairs of neighbours: who was bad with everybody is named, and two nodes convict nobody."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.evidence.pairs import (
    PairResult,
    PairState,
    judge_pairs,
    node_readings,
    path_problem,
    ring_rounds,
    suspects,
    usual_delay_us,
)
from brctl.model.localisation import Path


def ring(count: int, **failed: int | None) -> list[PairResult]:
    """Every pair of a ring well at 10 GB/s, but `n1_n2=3` failed three times."""
    nodes = [f"n{number}" for number in range(1, count + 1)]
    return [
        PairResult(pair, "all_gather", 4, failed.get("_".join(pair), 0), gb_per_s=10.0)
        for pairs in ring_rounds(nodes)
        for pair in pairs
    ]


def slowed(results: list[PairResult], rates: dict[tuple[str, str], float]) -> list[PairResult]:
    return [
        PairResult(r.pair, op, r.reps, 0, gb_per_s=rates.get((r.pair[0], op), 10.0))
        for op in ("all_gather", "all_to_all")
        for r in results
    ]


@given(st.integers(2, 41))
def test_every_node_meets_both_neighbours_once(count: int) -> None:
    """The rounds hold the ring's pairs, and within a round no node twice."""
    rounds = ring_rounds([f"n{number}" for number in range(count)])
    assert len({frozenset(pair) for pairs in rounds for pair in pairs}) == (
        1 if count == 2 else count
    )
    for pairs in rounds:
        members = [node for pair in pairs for node in pair]
        assert len(members) == len(set(members))


@pytest.mark.parametrize(
    ("results", "named"),
    [
        (ring(5), ()),
        (ring(5, n2_n3=1, n3_n4=4), ("n3",)),
        (ring(5, n2_n3=4), ()),
        (ring(2, n1_n2=4), ()),
        (ring(3, n1_n2=4, n2_n3=4), ("n2",)),
        (ring(3, n1_n2=4, n2_n3=4, n3_n1=4), ()),
        (ring(6, n2_n3=None, n3_n4=4), ()),
    ],
)
def test_the_node_that_is_bad_with_all_is_named(
    results: list[PairResult], named: tuple[str, ...]
) -> None:
    """One bad pair may be either node or the path; two that share a node are that node."""
    assert suspects(results, judge_pairs(results)) == named


def test_a_path_is_slow_beside_the_fleet_in_every_operation() -> None:
    """One slow operation is a neighbour's load; all of them are the path."""
    both = {("n2", "all_gather"): 5.0, ("n2", "all_to_all"): 5.0}
    results = slowed(ring(5), {**both, ("n4", "all_gather"): 1.0})
    slow = [
        r.pair
        for r, s in zip(results, judge_pairs(results), strict=True)
        if s is PairState.SLOW
    ]  # fmt: skip
    assert slow == [("n2", "n3"), ("n2", "n3")]


def test_few_pairs_are_not_compared() -> None:
    """Three rates make no fleet."""
    results = slowed(ring(3), {("n2", "all_gather"): 0.1, ("n2", "all_to_all"): 0.1})
    assert set(judge_pairs(results)) == {PairState.OK}


def test_a_slow_pair_elsewhere_does_not_excuse_wrong_bits() -> None:
    """On a busy fleet some pair is always slow; the node between two wrong ones is still named."""
    pairs = [("n1", "n2"), ("n2", "n3"), ("n3", "n4"), ("n4", "n5"), ("n5", "n1")]
    states = (
        PairState.SLOW, PairState.WRONG, PairState.WRONG, PairState.OK, PairState.OK,
    )  # fmt: skip
    results = [PairResult(pair, "all_to_all", 3, 0) for pair in pairs]
    assert suspects(results, states) == ("n3",)


def pingpongs(paths: dict[tuple[str, str], Path]) -> list[PairResult]:
    """A ring of five whose paths are well at 10 us and 10 GB/s but the given ones."""
    well = Path(10.0, 10.0, 10.0)
    return [
        PairResult(r.pair, "pingpong", 4, 0, gb_per_s=10.0, path=paths.get(r.pair, well))
        for r in ring(5)
    ]


def test_a_late_path_is_slow_though_every_bit_and_the_rate_are_right() -> None:
    late = Path(5000.0, 10.0, 10.0)
    results = pingpongs({("n2", "n3"): late, ("n3", "n4"): late})
    states = judge_pairs(results)
    assert suspects(results, states) == ("n3",)
    bad = [r for r, s in zip(results, states, strict=True) if s is PairState.SLOW]
    assert {path_problem(r, usual_delay_us(results)) for r in bad} == {
        "5000 us one way, the fleet's median is 10"
    }


def test_a_path_that_carries_half_only_one_way_is_slow_even_of_two_nodes() -> None:
    """The other way is its own yardstick, so no fleet is needed; the node stays unnamed."""
    result = PairResult(("a", "b"), "pingpong", 4, 0, gb_per_s=4.0, path=Path(10.0, 4.0, 10.0))
    assert judge_pairs([result]) == (PairState.SLOW,)
    assert path_problem(result, None) == "a to b carries 40% of what b to a does"
    assert suspects([result], judge_pairs([result])) == ()


def test_few_pairs_or_few_microseconds_make_no_path_late() -> None:
    two = [PairResult(("a", "b"), "pingpong", 4, 0, gb_per_s=10.0, path=Path(900.0, 10.0, 10.0))]
    assert judge_pairs(two) == (PairState.OK,)
    assert set(judge_pairs(pingpongs({("n1", "n2"): Path(90.0, 10.0, 10.0)}))) == {PairState.OK}


def odd_of(results: list[PairResult]) -> dict[str, object]:
    rows = node_readings(results)
    return {n: next(m.value for m in r if m.name.endswith(".odd")) for n, r in rows.items()}


def test_each_node_reads_what_its_pairs_say_of_it() -> None:
    assert odd_of(ring(5, n2_n3=1, n3_n4=4)) == dict.fromkeys(("n1", "n2", "n4", "n5"), "none") | {
        "n3": "wrong"
    }
    late = Path(5000.0, 10.0, 10.0)
    assert odd_of(pingpongs({("n2", "n3"): late, ("n3", "n4"): late}))["n3"] == "slow"


def test_a_node_nobody_measured_has_no_reading_that_could_clear_it() -> None:
    results = ring(4, n1_n2=None, n4_n1=None)
    assert sorted(node_readings(results)) == ["n2", "n3", "n4"]
