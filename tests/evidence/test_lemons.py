"""Lemons: weeks of single faults that name one node, and a bad week of all that names nobody."""

from datetime import timedelta

from brctl.evidence.lemons import RULES, LemonSign, LemonSignal, NodePast, lemons

WEEKS = timedelta(days=28)


def signs(node: str, **found: int) -> list[LemonSign]:
    """So many different things of each signal."""
    return [
        LemonSign(node, LemonSignal[s], f"{s} {n}")
        for s, count in found.items()
        for n in range(count)
    ]


def judged(*found: list[LemonSign], fleet: int = 100) -> tuple[NodePast, ...]:
    return lemons([sign for each in found for sign in each], fleet, WEEKS)


def test_all_seven_signals_of_the_rule_have_a_limit() -> None:
    assert set(RULES) == set(LemonSignal)
    assert len(RULES) == 7


def test_two_reasons_make_a_lemon_and_one_is_worth_a_look() -> None:
    found = judged(
        signs("n1", XIDS=3, MULTI_NODE_FAILS=4), signs("n2", XIDS=5), signs("n3", XIDS=1)
    )
    assert [(p.node, p.is_lemon, p.against) for p in found] == [
        ("n1", True, (LemonSignal.XIDS, LemonSignal.MULTI_NODE_FAILS)),
        ("n2", False, (LemonSignal.XIDS,)),
    ]
    assert found[1].evidence == {LemonSignal.XIDS: tuple(f"XIDS {n}" for n in range(5))}


def test_what_counts_the_same_thing_twice_is_one_reason() -> None:
    """A swap takes the node out of service and off the job; a rate comes from its count."""
    (moved,) = judged(signs("n1", OUTS=3, EXCLUDED_JOBS=3))
    (alone,) = judged(signs("n1", SINGLE_NODE_FAILS=4))
    assert (moved.against, moved.is_lemon) == ((LemonSignal.EXCLUDED_JOBS, LemonSignal.OUTS), False)
    assert (alone.against, alone.is_lemon) == (
        (LemonSignal.SINGLE_NODE_FAILS, LemonSignal.SINGLE_NODE_RATE),
        False,
    )
    assert alone.counts[LemonSignal.SINGLE_NODE_RATE] == round(4 / 28, 4)


def test_what_one_thing_says_twice_counts_once() -> None:
    assert judged(signs("n1", XIDS=1), signs("n1", XIDS=1), signs("n1", MULTI_NODE_FAILS=1)) == ()


def test_a_bad_week_of_all_names_nobody() -> None:
    """Six of a hundred had the same; of those one had more."""
    every = [signs(f"n{n}", XIDS=2, OUTS=2) for n in range(6)]
    assert judged(*every) == ()
    (worst,) = judged(*every, signs("n9", XIDS=3, OUTS=3))
    assert (worst.node, worst.is_lemon) == ("n9", True)
