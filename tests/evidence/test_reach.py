"""Most nodes silent at once is about what they share, and first of all about the way to them."""

import pytest

from brctl.evidence.reach import unreached_together
from brctl.model.command import Outcome
from brctl.model.inventory import Node
from brctl.model.sweeps.report import NodeReport

OUT = Outcome.CONNECT_TIMED_OUT


def reports(silent: int, answered: int, outcome: Outcome = OUT, said: str = "") -> list[NodeReport]:
    gone = [NodeReport(f"s{i}", outcome, detail=said) for i in range(silent)]
    return [*gone, *(NodeReport(f"a{i}", Outcome.ANSWERED) for i in range(answered))]


@pytest.mark.parametrize(("silent", "answered"), [(1, 0), (2, 2), (3, 5), (0, 4)])
def test_while_half_of_the_nodes_answer_it_is_not_the_way(silent: int, answered: int) -> None:
    """Nor is it where one node alone was asked."""
    assert unreached_together(reports(silent, answered), {}) is None


@pytest.mark.parametrize(("silent", "answered"), [(2, 0), (64, 0), (3, 2), (33, 31)])
def test_more_than_half_unreached_are_counted_with_those_who_answer(
    silent: int, answered: int
) -> None:
    found = unreached_together(reports(silent, answered), {})
    assert found is not None
    assert (len(found.nodes), found.asked) == (silent, silent + answered)
    assert found.title.startswith(f"{silent} of {silent + answered} nodes are not reached")
    assert ("not at the nodes" in found.title) is (answered == 0)


@pytest.mark.parametrize(
    ("outcome", "said", "reason", "ask"),
    [
        (Outcome.UNREACHABLE, "x:22: name does not resolve: unknown", "DNS", "getent hosts 10.0"),
        (OUT, "within 10 s: its name was not resolved by then", "DNS", "getent hosts 10.0"),
        (Outcome.UNREACHABLE, "x:22: Network is unreachable", "no route", "ip route get 10.0"),
        (OUT, "no TCP connection to x:22 within 10 s", "no TCP", "ip route get 10.0"),
        (Outcome.REFUSED, "x:22: Connection refused", "refused", "ssh -v 10.0"),
        (Outcome.UNREACHABLE, "jump host gw1: no TCP connection", "jump host", "brctl nodes show"),
        (Outcome.AUTHENTICATION_FAILED, "Permission denied", "login", "brctl doctor ssh"),
        (Outcome.HOST_KEY_MISMATCH, "Host key", "host key", "brctl doctor ssh"),
    ],
)
def test_the_reason_and_what_would_tell_more_follow_from_how_it_ended(
    outcome: Outcome, said: str, reason: str, ask: str
) -> None:
    node = Node("s0", "10.0.0.1")
    found = unreached_together(reports(5, 0, outcome, said), {"s0": node})
    assert found is not None
    ((words, count),) = found.reasons.items()
    assert reason in words
    assert count == 5
    assert found.settle[0].startswith(ask)


def test_a_node_that_was_slow_or_babbled_was_reached() -> None:
    for outcome in (Outcome.COMMAND_TIMED_OUT, Outcome.UNPARSABLE, Outcome.NOT_AVAILABLE):
        assert unreached_together(reports(5, 0, outcome), {}) is None


@pytest.mark.parametrize(
    ("theirs", "others", "shared"),
    [
        ({"rack": "r3"}, {"rack": "r4"}, "rack r3"),
        ({"rack": "r3", "leaf": "l1"}, {"rack": "r3", "leaf": "l2"}, "leaf l1"),
        ({"rack": "r3"}, {"rack": "r3"}, ""),
        ({}, {"rack": "r4"}, ""),
    ],
)
def test_what_only_the_unreached_share_is_named(
    theirs: dict[str, str], others: dict[str, str], shared: str
) -> None:
    nodes = {f"s{i}": Node(f"s{i}", "x", labels=theirs) for i in range(3)}
    nodes |= {f"a{i}": Node(f"a{i}", "x", labels=others) for i in range(2)}
    found = unreached_together(reports(3, 2), nodes)
    assert found is not None
    assert found.shared == shared
    everybody = unreached_together(reports(3, 0), nodes)
    assert everybody is not None
    assert everybody.shared == ""


def test_a_shared_gateway_comes_before_a_shared_rack() -> None:
    nodes = {f"s{i}": Node(f"s{i}", "x", via="gw1", labels={"rack": "r1"}) for i in range(3)}
    nodes["a0"] = Node("a0", "x")
    found = unreached_together(reports(3, 1), nodes)
    assert found is not None
    assert found.shared == "gateway gw1"


def behind(via: str, names: tuple[str, ...]) -> dict[str, Node]:
    return {name: Node(name, "x", via=via) for name in names}


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Outcome.UNREACHABLE, "its gateway is not reached"),
        (Outcome.UNPARSABLE, "what came is no answer"),
        (Outcome.OUTPUT_OVER_LIMIT, "what came is no answer"),
        (Outcome.COMMAND_TIMED_OUT, "what came is no answer"),
    ],
)
def test_a_gateway_from_behind_which_nobody_answers_is_named(outcome: Outcome, reason: str) -> None:
    """However few they are: it may be dead, broken or somebody else's."""
    nodes = behind("gw1", ("s0", "s1")) | behind("gw2", ("a0", "a1"))
    found = unreached_together(reports(2, 60, outcome, "gateway gw1: it sent noise"), nodes)
    assert found is not None
    assert (found.nodes, found.shared, dict(found.reasons)) == (
        ("s0", "s1"),
        "gateway gw1",
        {reason: 2},
    )
    assert found.settle == ("brctl nodes show s0",)
    assert "gateway gw1" in found.title


def test_a_gateway_through_which_one_node_answers_is_not_to_blame() -> None:
    nodes = behind("gw1", ("s0", "s1", "a0"))
    assert unreached_together(reports(2, 60, Outcome.UNREACHABLE, "gateway gw1: x"), nodes) is None
    alone = behind("gw1", ("s0",))
    assert unreached_together(reports(1, 60, Outcome.UNREACHABLE, "gateway gw1: x"), alone) is None


def test_two_gateways_that_fail_are_both_named() -> None:
    nodes = behind("gw2", ("s0", "s1")) | behind("gw1", ("s2", "s3"))
    found = unreached_together(reports(4, 60, Outcome.UNREACHABLE, "gateway: x"), nodes)
    assert found is not None
    assert found.shared == "gateway gw1, gw2"
