"""Numbers that went wrong lead to checks of every node, never to an eviction by themselves."""

from collections.abc import Callable
from random import Random

import pytest

from brctl.model.fault import Action, FaultClass
from tests.bench.verdicts import code, oncall_jobs
from tests.bench.verdicts.conclude import conclude
from tests.bench.verdicts.fleet import Fleet


def on_all(rng: Random) -> Fleet:
    """User code, or data: every rank in the same step."""
    return code.nan_on_all(rng)[0]


def on_all_and_in_gradients(rng: Random) -> Fleet:
    fleet = on_all(rng)
    for values in fleet.ranks:
        values |= {"grad_finite": False, "first_nonfinite_grad_step": 39}
    return fleet


def on_all_at_unknown_steps(rng: Random) -> Fleet:
    fleet = on_all(rng)
    for values in fleet.ranks:
        values.pop("first_nonfinite_step")
    return fleet


def on_one(rng: Random) -> Fleet:
    return code.nan_on_one(rng)[0]


def on_one_first(rng: Random) -> Fleet:
    return code.nan_spread_from_one(rng)[0]


def on_one_gradient_first(rng: Random) -> Fleet:
    return oncall_jobs.nan_gradient_of_one_first(rng)[0]


def on_one_node_first(rng: Random) -> Fleet:
    """All ranks of a node in one step, which share what they compute; the others later."""
    fleet = on_all(rng)
    (node,) = fleet.some_nodes(1)
    for rank in fleet.job.ranks_on(node):
        fleet.ranks[rank]["first_nonfinite_step"] = 38
    return fleet


def jumped(rng: Random) -> Fleet:
    return oncall_jobs.loss_spike(rng)[0]


@pytest.mark.parametrize(
    ("trouble", "named"),
    [
        (on_all, 0),
        (on_all_and_in_gradients, 0),
        (on_all_at_unknown_steps, 0),
        (on_one, 1),
        (on_one_first, 1),
        (on_one_gradient_first, 1),
        (on_one_node_first, 1),
        (jumped, 0),
    ],
)
def test_no_machine_is_swapped_for_numbers_alone(
    trouble: Callable[[Random], Fleet], named: int
) -> None:
    """Who was first is named; whether that is data, code or a machine only checks can tell."""
    (verdict, *_) = conclude(trouble(Random(1)))
    assert verdict.fault in (FaultClass.NUMERIC_NAN, FaultClass.UNKNOWN)
    assert len(verdict.nodes) == named
    assert verdict.action in (Action.LOCALISE, Action.STOP_TIME_CHECKS, Action.WATCH,
                              Action.COLLECT_MORE)  # fmt: skip
    assert verdict.playbook in ("locate-corruption", "stop-time-checks", "")
