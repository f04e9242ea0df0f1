"""Who must say yes, whose yes counts, and what the site may add but never take away."""

from collections.abc import Collection
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.runs.playbook import Need, Policy
from brctl.playbook.approvals import (
    Demand,
    agrees,
    confirmation_text,
    demands_of,
    missing,
    read_demand,
    strictest,
    why_not_counted,
)
from brctl.playbook.expressions import Scope

SWAP = load_playbook(shipped_dir("playbooks") / "swap-and-resume.yaml")
SCOPE: Scope = {
    "inputs": {"suspects": ["n1"]}, "verdict": {"confidence": "low"}, "job": {}, "nodes": 1,
}  # fmt: skip
GROUPS = {"ann": {"sre", "sre-lead"}, "bob": {"sre"}, "eve": set[str]()}


def groups_of(person: str) -> Collection[str]:
    return GROUPS.get(person, ())


def test_two_people_are_two_besides_whoever_started_it() -> None:
    """Unless the policy says that the starter may be one of them."""
    two = (Demand(Need.TWO),)
    assert missing(two, (), "ann", groups_of) == ("2 people other than ann, who started it",)
    assert missing(two, ("ann", "bob"), "ann", groups_of) == (
        "one more person other than ann, who started it",
    )
    assert missing(two, ("eve", "bob"), "ann", groups_of) == ()
    with_starter = (Demand(Need.TWO, starter_counts=True),)
    assert missing(with_starter, ("ann", "bob"), "ann", groups_of) == ()
    assert missing((Demand(Need.ONE),), ("ann",), "ann", groups_of) == ()


def test_a_role_is_a_unix_group_of_those_who_count() -> None:
    """A yes from outside the group helps nobody, and its giver is told so."""
    demands = (Demand(Need.ONE, "sre-lead"),)
    assert missing(demands, ("bob",), "eve", groups_of) == ("one person of group sre-lead",)
    assert missing(demands, ("ann",), "eve", groups_of) == ()
    assert why_not_counted(demands, "bob", "eve", groups_of) == "bob is not in group sre-lead"
    assert why_not_counted(demands, "ann", "eve", groups_of) is None
    actual = why_not_counted((Demand(Need.TWO),), "ann", "ann", groups_of)
    assert actual == "ann started this run, and it takes two other people"


def test_one_yes_may_meet_several_demands() -> None:
    """The playbook wants anybody, the site a lead: a lead does both."""
    site = [(Policy(Need.ONE, role="sre-lead"),)]
    demands = demands_of(SWAP, site, SCOPE, SCOPE)
    assert [d.role for d in demands] == ["sre-lead"]
    assert missing(demands, ("ann",), "", groups_of) == ()
    assert missing(demands, ("bob",), "", groups_of) == ("one person of group sre-lead",)
    assert [read_demand(d.as_json()) for d in demands] == list(demands)


@given(st.lists(st.tuples(st.sampled_from(list(Need)), st.sampled_from(["", "sre"])), max_size=4))
def test_the_site_never_lowers_what_the_playbook_needs(rows: list[tuple[Need, str]]) -> None:
    """Whatever stands in guards.yaml."""
    alone = demands_of(SWAP, (), SCOPE, SCOPE)
    site = [tuple(Policy(need, role=role) for need, role in rows)]
    both = demands_of(SWAP, site, SCOPE, SCOPE)
    assert [Need.NONE, Need.ONE, Need.TWO].index(strictest(both)) >= 1
    for people in chain.from_iterable(combinations(GROUPS, n) for n in range(4)):
        if not missing(both, people, "ann", groups_of):
            assert not missing(alone, people, "ann", groups_of)


@pytest.mark.parametrize(
    ("name", "nodes", "asked"),
    [
        ("restart-in-place", 0, "y"),
        ("stop-time-checks", 0, "y"),
        ("cordon", 3, "y"),
        ("swap-and-resume", 2, "swap 2"),
        ("stop-job", 0, "stop"),
        ("evacuate", 8, "lab-train"),
    ],
)
def test_words_are_typed_where_nodes_are_taken_or_a_job_stays_down(
    name: str, nodes: int, asked: str
) -> None:
    """A run that starts the job again on the nodes it has costs the steps since a checkpoint."""
    playbook = load_playbook(shipped_dir("playbooks") / f"{name}.yaml")
    assert confirmation_text(playbook, nodes, "lab-train") == asked
    assert agrees(playbook, f" {asked}\n", asked)
    assert not agrees(playbook, "yes, do", asked)


def test_the_verb_says_no_less_than_y_and_y_is_no_verb() -> None:
    """Scripts that typed `restart` go on; nobody swaps a node with one key."""
    restart = load_playbook(shipped_dir("playbooks") / "restart-in-place.yaml")
    assert agrees(restart, "restart", "y")
    assert not agrees(SWAP, "y", "swap 1")
