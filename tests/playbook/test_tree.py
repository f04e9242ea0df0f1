"""The decision tree climbs from cheap to dear and never proposes what does not fit."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

import brctl
from brctl.library.playbooks import load_playbooks
from brctl.library.shipped import shipped_dir
from brctl.model.fault import FaultClass
from brctl.model.verdict import Confidence, Verdict
from brctl.playbook.proposals import why_not
from brctl.playbook.tree import FALLBACK, TREE, describe_tree, next_move
from brctl.verdict.catalogue import CATALOGUE
from tests.fakes.ground import example_verdict

PLAYBOOKS = load_playbooks([shipped_dir("playbooks")])
SURE, HALF, WEAK = 0.97, 0.7, 0.3


def verdict(fault: FaultClass, probability: float = SURE, *, nodes: bool = True) -> Verdict:
    base = example_verdict()
    suspects = base.suspects if nodes else ()
    return replace(base, fault=fault, probability=probability, suspects=suspects)


@pytest.mark.parametrize(
    ("fault", "probability", "nodes", "tried", "alerts", "playbook"),
    [
        (FaultClass.GPU_LOST, SURE, True, (), 1, "swap-and-resume"),
        (FaultClass.GPU_LOST, SURE, True, ("swap-and-resume",), 1, "stop-time-checks"),
        (FaultClass.GPU_LOST, WEAK, True, (), 1, "stop-time-checks"),
        (FaultClass.NETWORK_IB, SURE, True, (), 1, ""),
        (FaultClass.NETWORK_IB, SURE, True, (), 2, "swap-and-resume"),
        (FaultClass.USER_CODE, SURE, False, (), 1, "restart-in-place"),
        (FaultClass.USER_CODE, SURE, False, ("restart-in-place",), 1, ""),
        (FaultClass.NUMERIC_NAN, HALF, True, (), 1, "stop-time-checks"),
        (FaultClass.NUMERIC_NAN, HALF, True, ("stop-time-checks",), 1, "restart-in-place"),
        (FaultClass.HANG_MISMATCH, SURE, True, (), 1, "swap-and-resume"),
        (FaultClass.HANG_MISMATCH, HALF, True, (), 1, "group-evict"),
        (FaultClass.HANG_MISMATCH, HALF, True, ("group-evict",), 1, "stop-time-checks"),
        (FaultClass.UNKNOWN, WEAK, False, (), 1, "stop-time-checks"),
        (FaultClass.UNKNOWN, WEAK, False, ("stop-time-checks", "restart-in-place"), 1, ""),
    ],
)
def test_the_paths_of_the_paper(
    fault: FaultClass,
    probability: float,
    nodes: bool,
    tried: tuple[str, ...],
    alerts: int,
    playbook: str,
) -> None:
    """Evict on high confidence; two network alerts first; unclear to checks, restart, a person."""
    found = next_move(verdict(fault, probability, nodes=nodes), tried, alerts)
    assert found.playbook == playbook


def test_every_playbook_of_the_tree_ships() -> None:
    """The tree never sends anybody to a file that is not there."""
    assert {row.playbook for row in (*TREE, *FALLBACK)} - {""} <= set(PLAYBOOKS)


@pytest.mark.parametrize(("fault", "probability"), list(product(FaultClass, (SURE, HALF, WEAK))))
def test_what_is_tried_is_not_proposed_again(fault: FaultClass, probability: float) -> None:
    """Following the tree ends with a person, whatever the verdict."""
    tried: list[str] = []
    while playbook := next_move(verdict(fault, probability), tried, alerts=2).playbook:
        assert playbook not in tried
        tried.append(playbook)


def test_the_catalogue_proposes_only_playbooks_that_accept_its_class() -> None:
    """`brctl fix` on a sure verdict is never refused for a playbook the catalogue itself named."""
    for fault, row in CATALOGUE.items():
        if row.playbook:
            assert why_not(PLAYBOOKS[row.playbook], verdict(fault)) is None, fault


def test_a_weak_verdict_is_not_acted_on_by_a_playbook_that_wants_more() -> None:
    """The sentence says what is missing."""
    weak = verdict(FaultClass.GPU_LOST, WEAK)
    assert weak.confidence is Confidence.LOW
    assert why_not(PLAYBOOKS["swap-and-resume"], weak) == (
        "V-1 is of low confidence, swap-and-resume wants medium"
    )
    other = verdict(FaultClass.USER_CODE)
    assert why_not(PLAYBOOKS["swap-and-resume"], other) == "swap-and-resume is not for user-code"


def test_the_tree_in_the_documentation_is_the_tree_in_the_code() -> None:
    """The page is drawn from the table; `describe_tree()` prints what belongs there."""
    page = Path(brctl.__file__).parent / "decisions" / "0050-decision-tree.md"
    assert describe_tree() in page.read_text()
