"""brctl's own watcher in a simulation: its rules see, its policy and its gates decide."""

from dataclasses import replace

import pytest

from brctl.model.fault import FaultClass
from brctl.model.watch.policy import WatchLimits, WatchMode, WatchPolicy
from brctl.simulate.answers import NOW
from brctl.simulate.decisions import Rules, rules_of
from brctl.simulate.policies import POLICIES
from brctl.simulate.symptoms import Kind
from brctl.simulate.watching import RULE_OF, SimulatedWatch
from brctl.watch.rules import RULES
from tests.simulate.fleets import MEANS, simulated

SHORT = replace(MEANS, days=12.0)
MACHINES = replace(SHORT, shares={"gpu-memory": 1.0})


def rules(policy: WatchPolicy) -> Rules:
    return replace(rules_of(), watch=policy)


def test_observing_leaves_all_to_people_proposing_pages_them_acting_acts() -> None:
    """On the same faults, the more it may the fewer hours people are waited for."""
    runs = {mode: simulated(SHORT, f"watch-{mode}", 5) for mode in WatchMode}
    observe, propose, act = (runs[mode] for mode in WatchMode)
    assert observe.actions == observe.healthy_evicted == 0 < propose.actions
    assert propose.pages > act.pages > 0
    assert observe.ettr < propose.ettr < act.ettr


def test_a_class_that_the_policy_only_observes_is_left_to_people() -> None:
    policy = WatchPolicy(WatchMode.ACT, classes={FaultClass.GPU_MEMORY_ECC: WatchMode.OBSERVE})
    found = simulated(MACHINES, "watch-act", 5, rules(policy))
    assert (found.actions, found.pages) == (0, found.stops)
    assert simulated(MACHINES, "watch-act", 5).actions > 0


def test_an_open_breaker_pages_until_a_person_closes_it() -> None:
    """One node a day of 1,200 with two bad ones a day: it opens, and opens again."""
    strict = replace(POLICIES["watch-act"], breaker_percent=0.01)
    often = replace(MACHINES, per_1000_node_days=3.0)
    found, usual = simulated(often, strict, 5), simulated(often, "watch-act", 5)
    assert found.refused > usual.refused
    assert found.pages > usual.pages
    assert 0 < found.culprits_evicted <= usual.culprits_evicted + 5


def test_in_its_first_minutes_it_only_proposes() -> None:
    """Ten minutes by default; a year here."""
    policy = WatchPolicy(WatchMode.ACT, limits=WatchLimits(start_up_s=3e7))
    found = simulated(MACHINES, "watch-act", 5, rules(policy))
    assert found.pages == found.stops > 0


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.MANUAL])
def test_it_sees_as_late_as_its_rule_says(kind: Kind) -> None:
    rule = RULES[RULE_OF[kind]]
    watch = SimulatedWatch(WatchPolicy(), WatchMode.ACT, NOW)
    first, last = watch.seen_after_s(kind, 0.0), watch.seen_after_s(kind, 1.0)
    assert (first, last) == (rule.every_s * (rule.looks - 1), rule.every_s * rule.looks)
