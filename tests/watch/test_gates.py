"""A watcher acts only through open gates, and every gate says why."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from brctl.model.fault import FaultClass
from brctl.model.runs.calendar import Calendar, Span
from brctl.model.verdict import Confidence
from brctl.model.watch.policy import WatchMode, WatchPolicy
from brctl.model.watch.state import WatchAct, WatchDecision, WatchState
from brctl.watch.gates import GateFacts, WatchedVerdict, closed_breaker, decide, shifted

NOW = datetime(2026, 7, 5, 3, 2, tzinfo=UTC)
ACT = WatchPolicy(mode=WatchMode.ACT)
UP_FOR_LONG = WatchState(NOW - timedelta(days=3))
FACTS = GateFacts(NOW, known=128, spares=9)


def lost_gpu(number: int = 1) -> WatchedVerdict:
    return WatchedVerdict(
        f"V-{number}", FaultClass.GPU_LOST, Confidence.HIGH, (f"n{number}",), "llm",
        "swap-and-resume", takes_nodes=True, step=100,
    )  # fmt: skip


def made(
    verdict: WatchedVerdict | None = None,
    policy: WatchPolicy = ACT,
    state: WatchState = UP_FOR_LONG,
    facts: GateFacts = FACTS,
    cap: WatchMode = WatchMode.ACT,
) -> WatchDecision:
    return decide(verdict or lost_gpu(), "gpu", policy, cap, state, facts)


def acted(*numbers: int, ago: timedelta = timedelta(minutes=1), step: int | None = 0) -> WatchState:
    acts = tuple(
        WatchAct(NOW - ago, f"V-{n}", FaultClass.GPU_LOST, (f"n{n}",), f"job-{n}", step, 1)
        for n in numbers
    )
    return replace(UP_FOR_LONG, acts=acts)


def test_a_sure_verdict_acts_where_policy_and_every_gate_allow_it() -> None:
    decision = made()
    assert (decision.mode, decision.held) == ("act", "")
    assert all(gate.open and gate.why for gate in decision.gates)


def test_without_a_policy_a_watcher_observes() -> None:
    decision = made(policy=WatchPolicy())
    assert (decision.mode, decision.held) == ("observe", "mode observe")


def test_a_policy_that_cannot_be_read_observes_and_says_why() -> None:
    decision = made(policy=replace(ACT, problem="policy.yaml:3: unknown key 'moed'"))
    assert decision.mode == "observe"
    assert "unknown key 'moed'" in decision.held


@pytest.mark.parametrize(
    ("rules", "classes", "mode"),
    [
        ({"gpu": WatchMode.PROPOSE}, {}, "propose"),
        ({"gpu": WatchMode.ACT}, {FaultClass.GPU_LOST: WatchMode.OBSERVE}, "observe"),
        ({}, {FaultClass.GPU_LOST: WatchMode.ACT}, "act"),
    ],
)
def test_rule_and_class_stand_before_the_default_and_the_stricter_wins(
    rules: dict[str, WatchMode], classes: dict[FaultClass, WatchMode], mode: str
) -> None:
    assert made(policy=WatchPolicy(rules=rules, classes=classes)).mode == mode


def test_the_command_line_caps_what_the_policy_allows() -> None:
    assert made(cap=WatchMode.PROPOSE).mode == "propose"


def test_of_128_nodes_the_third_in_five_minutes_is_acted_on_and_the_fourth_is_held() -> None:
    """The 2 % breaker of watch.md: ceil(2.56) is 3; the fourth opens it."""
    assert made(lost_gpu(3), state=acted(1, 2)).mode == "act"
    fourth = made(lost_gpu(4), state=acted(1, 2, 3))
    assert fourth.mode == "propose"
    assert fourth.opens_breaker == "4 of 3 nodes in 5m00"


def test_the_day_counts_beside_the_five_minutes() -> None:
    """ceil(5 % of 128) is 7: the eighth node of a day is held, however slowly they come."""
    slowly = acted(*range(1, 8), ago=timedelta(hours=5))
    assert "8 of 7 nodes in 1d00h" in made(lost_gpu(8), state=slowly).opens_breaker
    assert made(lost_gpu(8), state=acted(*range(1, 8), ago=timedelta(hours=25))).mode == "act"


def test_an_open_breaker_holds_what_takes_no_node_too() -> None:
    restart = replace(lost_gpu(), takes_nodes=False, playbook="restart-in-place")
    opened = replace(UP_FOR_LONG, breaker_open="2026-07-05: 4 of 3 nodes")
    assert made(restart, state=opened).held.startswith("breaker: open since")
    assert made(restart).mode == "act"


def test_what_takes_nodes_that_only_its_run_finds_is_proposed_and_opens_no_breaker() -> None:
    found = made(replace(lost_gpu(), playbook="replay", finds_nodes=True))
    assert (found.mode, found.opens_breaker) == ("propose", "")
    assert found.held == "nodes: which nodes replay takes shows only in its run"
    assert made(replace(lost_gpu(), nodes=())).held.startswith("nodes:")


def test_a_breaker_of_a_fleet_nobody_counted_lets_nothing_through() -> None:
    assert made(facts=replace(FACTS, known=0)).held.startswith("breaker: 1 of")


def test_a_closed_breaker_counts_anew_and_what_it_held_is_judged_anew() -> None:
    opened = replace(acted(1, 2, 3), breaker_open="since then")
    closed = closed_breaker(opened, NOW)
    assert made(lost_gpu(4), state=closed).mode == "act"


@pytest.mark.parametrize(
    ("spares", "held"),
    [(None, "spares: nobody knows"), (1, "spares: 1 ready, 0 after it"), (2, "")],
)
def test_the_last_standby_is_kept(spares: int | None, held: str) -> None:
    assert made(facts=replace(FACTS, spares=spares)).held.startswith(held)


def test_a_node_is_tried_twice_a_day_for_one_fault() -> None:
    twice = replace(UP_FOR_LONG, acts=(*acted(1).acts, *acted(1, ago=timedelta(hours=9)).acts))
    third = made(replace(lost_gpu(1), id="V-new"), state=twice)
    assert (third.mode, third.held) == ("propose", "attempts: 2 of 2 in 24 h on n1")
    other = replace(lost_gpu(1), id="V-new", fault=FaultClass.GPU_MEMORY_ECC)
    assert made(other, state=twice).mode == "act"


def test_three_restarts_that_came_to_nothing_are_enough() -> None:
    idle = tuple(
        WatchAct(
            NOW - timedelta(minutes=9 * n), f"V-{n}", FaultClass.HANG_MISMATCH, (), "llm", s, 1
        )
        for n, s in ((1, 95), (2, 92), (3, 91))
    )
    restart = replace(lost_gpu(9), takes_nodes=False)
    assert made(restart, state=replace(UP_FOR_LONG, acts=idle)).held == "restarts: 3 of 3 in 30m00"
    went_on = tuple(replace(act, step=10) for act in idle)
    assert made(restart, state=replace(UP_FOR_LONG, acts=went_on)).mode == "act"


def test_a_node_that_a_person_gave_back_is_left_alone_for_a_day() -> None:
    until = NOW + timedelta(hours=3)
    quiet = replace(UP_FOR_LONG, quiet={"n1": until})
    assert made(state=quiet).held.startswith("quiet: a person had a hand in n1")
    assert made(lost_gpu(2), state=quiet).mode == "act"
    assert made(state=quiet, facts=replace(FACTS, now=until)).mode == "act"


def test_a_freeze_and_a_calendar_nobody_can_read_hold() -> None:
    frozen = replace(ACT, freezes=("black-friday",))
    span = Span(NOW - timedelta(hours=1), NOW + timedelta(hours=1))
    inside = {"black-friday": Calendar("black-friday", (span,))}
    assert made(policy=frozen, facts=replace(FACTS, calendars=inside)).held.startswith("freeze")
    assert "nobody read it" in made(policy=frozen).held
    outside = {"black-friday": Calendar("black-friday")}
    assert made(policy=frozen, facts=replace(FACTS, calendars=outside)).mode == "act"


def test_for_the_first_ten_minutes_it_only_looks() -> None:
    fresh = replace(UP_FOR_LONG, began_at=NOW - timedelta(minutes=9))
    assert made(state=fresh).held == "start-up: up for 9m00 of the first 10m00"


@pytest.mark.parametrize(
    "verdict",
    [
        replace(lost_gpu(), fault=FaultClass.UNKNOWN),
        replace(lost_gpu(), fault=FaultClass.NO_FAULT),
        replace(lost_gpu(), confidence=Confidence.MEDIUM),
    ],
)
def test_what_is_not_known_for_sure_neither_acts_nor_wakes_anybody(verdict: WatchedVerdict) -> None:
    assert made(verdict).mode == "observe"


def test_one_verdict_is_acted_on_once() -> None:
    decision = made(state=acted(1))
    assert (decision.mode, decision.held.partition(":")[0]) == ("observe", "once")


def test_a_clock_that_jumped_an_hour_empties_no_window() -> None:
    """The breaker's five minutes are still five minutes by the new clock."""
    hour = timedelta(hours=1)
    later = shifted(acted(1, 2, 3), hour)
    facts = replace(FACTS, now=NOW + hour)
    assert made(lost_gpu(4), state=later, facts=facts).opens_breaker
    assert made(lost_gpu(4), state=acted(1, 2, 3), facts=facts).mode == "act"


def test_a_clock_that_was_set_back_hides_no_later_kernel_line() -> None:
    heard = replace(UP_FOR_LONG, kernel_since={"n1": NOW})
    assert shifted(heard, timedelta(hours=-1)).kernel_since == {"n1": NOW - timedelta(hours=1)}
