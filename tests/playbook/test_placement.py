"""Groups stand whole where they can, and nothing is called the same that nobody knows."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brctl.model.jobs.job import Job, example_job
from brctl.playbook.placement.advise import advise, best_order
from brctl.playbook.placement.assign import best_fit, cost, lacking, place, whole_rows_first
from brctl.playbook.placement.domains import Domains, domains_of
from brctl.playbook.placement.pool import pool_place
from brctl.playbook.placement.spread import badness, layout_of, rows_of, spreads
from brctl.playbook.placement.standbys import COLD_S, PARKED_S, LostNodes, ReadyNode, choose

HOURS_S = 3600.0


def job_of(nodes: list[str], pp: int) -> Job:
    """A job with tensor parallelism inside the node."""
    axes = (("tp", 8), ("pp", pp), ("dp", len(nodes) // pp))
    return replace(example_job(), nodes=tuple(nodes), ranks_per_node=8, axes=axes)


def labelled(where: dict[str, str]) -> Domains:
    """Nodes with a spine each."""
    return domains_of({n: {"spine": d} if d else {} for n, d in where.items()}, list(where))


@pytest.mark.parametrize(
    ("free", "rows", "length", "widest", "used"),
    [
        ([10, 10, 10], 3, 8, 1, 3),
        ([7, 9, 8], 2, 8, 1, 2),
        ([8, 8, 8], 3, 8, 1, 3),
        ([7, 9, 8], 3, 8, 2, 3),
        ([12, 6, 6], 3, 4, 1, 1),
    ],
)
def test_whole_rows_are_kept_where_nodes_suffice(
    free: list[int], rows: int, length: int, widest: int, used: int
) -> None:
    """The worked cases; 24 of 24 nodes leave no slack, so one row is split."""
    found = cost(place(dict(zip("abc", free, strict=True)), rows, length))
    assert (found[0], found[2]) == (widest, used)


def test_best_fit_splits_rows_that_whole_rows_keep() -> None:
    """Three domains of ten hold three rows of eight, cut as they come two of them are split."""
    free = {"a": 10, "b": 10, "c": 10}
    assert cost(best_fit(free, 3, 8))[0] == 2
    assert cost(best_fit({"a": 7, "b": 9, "c": 8}, 2, 8))[0] == 2


def test_too_few_nodes_give_no_placement_and_the_shortage_is_named() -> None:
    """One node in the right domain would do; nothing is placed on nodes that are not there."""
    assert place({"a": 3}, 1, 4) == ()
    assert lacking({"a": 7, "b": 9, "c": 8}, 3, 8) == {"a": 1}
    assert lacking({"a": 7, "b": 9}, 2, 8, limit={"a": 0}) == {}


free_nodes = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 40), min_size=1)


@settings(max_examples=60)
@given(free_nodes, st.integers(1, 8), st.integers(1, 8))
def test_a_placement_takes_no_more_than_there_is(
    free: dict[str, int], rows: int, length: int
) -> None:
    """Every row is full, no domain gives more than it has, both ways, in any order of domains."""
    found = place(free, rows, length)
    assert len(found) == (rows if sum(free.values()) >= rows * length else 0)
    assert all(len(row) == length for row in found)
    taken = [domain for row in found for domain in row]
    assert all(taken.count(domain) <= free[domain] for domain in set(taken))
    assert place(dict(reversed(free.items())), rows, length) == found
    if found:
        both = (whole_rows_first(free, rows, length), best_fit(free, rows, length))
        assert cost(found) == min(map(cost, both))


def test_groups_are_counted_once_for_the_nodes_they_span() -> None:
    """Eight tensor ranks a node: eight pipelines of ranks are one pipeline of nodes."""
    layout = layout_of(job_of([f"n{i}" for i in range(12)], pp=4))
    assert [(axis.axis, len(axis.groups)) for axis in layout.axes] == [("pp", 3), ("dp", 4)]
    assert layout.rows[0] == (0, 1, 2, 3)
    found = spreads(layout, ["a"] * 6 + ["b"] * 6)
    assert [(s.widest, s.split, s.total) for s in found] == [(2, 1, 4), (2, 4, 8)]


def test_rows_of_uneven_groups_are_one_row() -> None:
    """Who belongs together cannot be cut there."""
    assert rows_of(4, [(0, 1), (1, 2)]) == ((0, 1, 2, 3),)


@settings(max_examples=40)
@given(st.lists(st.sampled_from("abc"), min_size=12, max_size=12), st.permutations(range(12)))
def test_another_rank_order_never_splits_more(places: list[str], shuffled: list[int]) -> None:
    """The same nodes stay, and which of two equal nodes comes first decides nothing."""
    names = [f"n{i}" for i in range(12)]
    where = labelled(dict(zip(names, places, strict=True)))
    layout = layout_of(job_of(names, pp=4))
    before = badness(spreads(layout, places))
    found = best_order(layout, names, where)
    assert badness(found.spreads) <= before
    assert sorted(found.nodes) == sorted(names)
    assert best_order(layout, found.nodes, where).nodes == found.nodes
    equals = {d: [names[i] for i in shuffled if places[i] == d] for d in "abc"}
    again = best_order(layout, [equals[d].pop() for d in places], where)
    assert badness(again.spreads) == badness(found.spreads)


def test_best_takes_the_fewest_free_nodes_that_make_groups_whole() -> None:
    """One row of four needs one node beside its three; the others stay."""
    own = {"n0": "a", "n1": "a", "n2": "a", "n3": "b", "n4": "b", "n5": "b", "n6": "b", "n7": "b"}
    free = {"x0": "c", "x1": "a", "x2": "a", "x3": ""}
    found = advise(layout_of(job_of(list(own), pp=4)), list(own), list(free), labelled(own | free))
    assert (found.now.spreads[0].widest, found.best.spreads[0].widest) == (2, 1)
    assert found.best.moved_in == ("x1",)
    assert found.now.slower_by > found.best.slower_by == 0
    assert found.lacking == {}


def test_without_slack_it_says_which_nodes_are_missing() -> None:
    """No free node: the best is what the job's own nodes give, and the price is named."""
    own = {f"n{i}": d for i, d in enumerate("aaabbbbb")}
    found = advise(layout_of(job_of(list(own), pp=4)), list(own), [], labelled(own))
    assert found.best == found.rank_order
    assert found.lacking == {"a": 1}


def test_a_node_without_label_stands_alone() -> None:
    """Missing, empty, absurd or filler: never the same as another, and named."""
    odd = {
        "n0": "su1",
        "n1": "",
        "n2": "unknown",
        "n3": "x" * 200,
        "n4": "a\x1b[31m",
        "n5": " su1 ",
    }
    found = labelled(odd)
    assert found.unlabelled == ("n1", "n2", "n3", "n4")
    assert len({found.of(n) for n in found.unlabelled}) == 4
    assert found.of("n0") == found.of("n5") == "su1"


def test_a_standby_nobody_lists_stands_alone() -> None:
    """A pool keeps the name of a node that left the inventory."""
    assert not labelled(PAIR).known("gone")
    found = choose(loss(["a1"], 3600.0, {}), [ReadyNode("gone", 0.0)])
    assert (dict(found.standby_of), found.spreads[0].split) == ({"a1": "gone"}, 1)


def test_the_level_is_the_widest_that_most_nodes_have() -> None:
    """A spine on one node of three does not make the others unknown while all have a leaf."""
    labels = {f"n{i}": {"leaf": "l1"} for i in range(3)}
    labels["n0"] = {"leaf": "l1", "spine": "s1"}
    assert domains_of(labels, list(labels)).level == "leaf"
    labels |= {n: {"leaf": "l1", "spine": "s1"} for n in labels}
    assert domains_of(labels, list(labels)).level == "spine"
    assert domains_of({}, ["gone"]) == Domains("", {"gone": "?gone"}, ("gone",))


PAIR = {
    **dict.fromkeys(["a0", "a1", "a2", "a3"], "a"),
    **dict.fromkeys(["b0", "b1", "b2", "b3"], "b"),
}
POOL = {"sa": "a", "sb": "b"}


def loss(lost: list[str], uptime_s: float, pool: dict[str, str], slower: float = 0.01) -> LostNodes:
    """Two whole rows of four that lost some nodes."""
    layout = layout_of(job_of(list(PAIR), pp=4))
    return LostNodes(layout, tuple(PAIR), tuple(lost), labelled(PAIR | pool), uptime_s, slower)


@pytest.mark.parametrize(("uptime_s", "chosen"), [(12 * HOURS_S, "sa"), (600.0, "sb")])
def test_place_is_priced_against_readiness_in_seconds(uptime_s: float, chosen: str) -> None:
    """1 % of 12 h is more than a cold start, 1 % of the last ten minutes is not."""
    candidates = [ReadyNode("sb", PARKED_S), ReadyNode("sa", COLD_S)]
    found = choose(loss(["a2"], uptime_s, POOL), candidates)
    assert found.standby_of == {"a2": chosen}
    assert found.spreads[0].split == (chosen == "sb")


def test_equally_ready_standbys_are_chosen_by_place() -> None:
    """Each stands where the node it replaces stood, whatever order the pool has."""
    candidates = [ReadyNode("sb", COLD_S), ReadyNode("sa", COLD_S)]
    found = choose(loss(["a1", "b1"], 60.0, POOL), candidates)
    assert found.standby_of == {"a1": "sa", "b1": "sb"}
    assert found.slower_by == 0


def test_a_whole_group_is_replaced_by_a_block_of_one_domain() -> None:
    """The pool's first four stand apart; the four of one domain come in."""
    pool = {"s0": "c", "s1": "d", "s2": "c", "k0": "e", "k1": "e", "k2": "e", "k3": "e"}
    lost = ["b0", "b1", "b2", "b3"]
    found = choose(loss(lost, HOURS_S, pool), [ReadyNode(n, COLD_S) for n in pool])
    assert list(found.standby_of.values()) == ["k0", "k1", "k2", "k3"]
    assert found.spreads[0].widest == 1


def test_standbys_elsewhere_are_still_taken_and_priced() -> None:
    """The swap goes on; the split group has a price."""
    found = choose(loss(["a2"], HOURS_S, {"s0": "c"}), [ReadyNode("s0", PARKED_S)])
    assert found.standby_of == {"a2": "s0"}
    assert (found.spreads[0].widest, found.slower_by) == (2, 0.01)


def test_without_labels_the_order_given_decides() -> None:
    """Nobody knows where anything stands, so the best prepared is taken first as ever."""
    nowhere = dict.fromkeys(["s0", "s1", "s2"], "")
    where = labelled(dict.fromkeys([*PAIR, *nowhere], ""))
    known = replace(loss(["a2"], 12 * HOURS_S, nowhere), domains=where)
    ready = [ReadyNode("s1", PARKED_S), ReadyNode("s0", COLD_S), ReadyNode("s2", COLD_S)]
    assert choose(known, ready).standby_of == {"a2": "s1"}
    assert choose(known, ready[1:]).standby_of == {"a2": "s0"}
    assert choose(known, []).standby_of == {}


def test_a_pool_in_one_place_leaves_groups_without_a_standby() -> None:
    """The row in b has none; one more there would do, and no block of four is anywhere."""
    pool = {"s0": "a", "s1": "a", "s2": ""}
    layout = layout_of(job_of(list(PAIR), pp=4))
    found = pool_place(layout, list(PAIR), list(pool), labelled(PAIR | pool), losses=2)
    assert found is not None
    assert (found.standing, found.unlabelled, found.block) == ({"a": 2}, ("s2",), 2)
    assert (found.groups, found.without, found.wanted) == (2, 1, ("b",))


def test_without_labels_nothing_is_said_of_the_pools_place() -> None:
    """Unknown is not "spread"."""
    where = labelled(dict.fromkeys([*PAIR, "s0"], ""))
    layout = layout_of(job_of(list(PAIR), pp=4))
    assert pool_place(layout, list(PAIR), ["s0"], where, losses=2) is None
