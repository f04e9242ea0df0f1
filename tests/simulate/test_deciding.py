"""The product's own rules on simulated faults: what they see, what they choose, what it costs."""

import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.model.fault import FaultClass
from brctl.model.simulation import Book
from brctl.playbook.tree import IncidentHistory
from brctl.simulate.answers import BYSTANDER, answers_to, culprits_in
from brctl.simulate.decisions import convicted_by_replay, move_of, rules_of, verdict_of
from brctl.simulate.fleet import Signals
from brctl.simulate.policies import POLICIES
from brctl.simulate.symptoms import SYMPTOMS, Cause
from brctl.simulate.trace import DrawnFault
from tests.simulate.fleets import MEANS, simulated

DAYS = 30.0
USUAL = Signals()
SHORT = replace(MEANS, days=DAYS)
FAULTS = [name for name in SYMPTOMS if name != "manual"]


def fault_of(symptom: str, cause: Cause, *nodes: int) -> DrawnFault:
    return DrawnFault(1, 0, symptom, cause, nodes)


@pytest.mark.parametrize("symptom", FAULTS)
@pytest.mark.parametrize("cause", [Cause.MACHINE, Cause.CODE])
def test_no_fault_is_ever_called_health(symptom: str, cause: Cause) -> None:
    fault = fault_of(symptom, cause, *((5,) if cause is Cause.MACHINE else ()))
    for look in range(3):
        assert verdict_of(answers_to(fault, USUAL, 7, look)).fault is not FaultClass.NO_FAULT


@pytest.mark.parametrize(
    ("symptom", "fault", "playbook"),
    [
        ("gpu-memory", FaultClass.GPU_MEMORY_ECC, "swap-and-resume"),
        ("gpu-unavailable", FaultClass.GPU_LOST, "swap-and-resume"),
        ("kernel-panic", FaultClass.NODE_FAILURE, "swap-and-resume"),
        ("mfu-decline", FaultClass.THERMAL_POWER, "swap-and-resume"),
        ("hang", FaultClass.HANG_MISMATCH, "restart-in-place"),
        ("disk-space", FaultClass.DISK_FULL, ""),
    ],
)
def test_a_bad_machine_is_found_and_the_tree_says_what_comes_first(
    symptom: str, fault: FaultClass, playbook: str
) -> None:
    bad = fault_of(symptom, Cause.MACHINE, 5)
    verdict = verdict_of(answers_to(bad, USUAL, 1, 0))
    assert (verdict.fault, verdict.nodes) == (fault, culprits_in(bad))
    assert move_of(verdict, IncidentHistory()).playbook == playbook


def test_checks_that_time_out_reach_the_rules_as_what_was_not_looked_at() -> None:
    fault = fault_of("cuda-error", Cause.CODE)
    late = next(
        found for look in range(1_000)
        if (found := answers_to(fault, USUAL, 7, look)).name.endswith("unanswered")
    )  # fmt: skip
    gaps = verdict_of(late).not_checked
    assert {gap.what for gap in gaps if gap.subject.node in culprits_in(fault)} >= {"gpu.ecc"}


def test_what_looks_alike_is_decided_alike_whatever_is_true() -> None:
    seen = {
        answers_to(fault_of("cpu-overload", cause, 5), USUAL, 7, 0).name
        for cause in (Cause.MACHINE, Cause.PASSING)
    }
    assert seen == {"cpu-overload"}


def test_nodes_that_a_switch_takes_at_once_are_all_named() -> None:
    many = fault_of("kernel-panic", Cause.MACHINE, *range(100, 132))
    verdict = verdict_of(answers_to(many, USUAL, 7, 0))
    assert (verdict.fault, verdict.nodes) == (FaultClass.NODE_FAILURE, culprits_in(many))


def test_a_wrong_first_move_costs_a_second_one() -> None:
    """A restart does not mend code: it stops again, and the tree climbs or asks a person."""
    code = replace(SHORT, shares={"cuda-error": 1.0})
    run = simulated(code, "site", 3)
    assert 0 < run.came_back < run.stops
    assert run.hours(Book.REDO) > run.came_back * 120 / 3_600
    assert run.approvals > run.came_back


def test_what_a_source_leaves_unexplained_is_added_once_a_stop() -> None:
    """However often the rules have to try."""
    code = replace(SHORT, shares={"cuda-error": 1.0})
    more = replace(code, times=replace(code.times, unexplained_s=60.0))
    without, found = simulated(code, "site", 3), simulated(more, "site", 3)
    minutes = 60 * (found.hours(Book.LOAD) - without.hours(Book.LOAD))
    assert minutes == pytest.approx(found.stops, abs=3)


def test_people_who_are_slow_cost_what_a_warm_standby_saves() -> None:
    slow = replace(SHORT, people=replace(SHORT.people, approval_s=3_600.0))
    quick = replace(SHORT, people=replace(SHORT.people, approval_s=0.0))
    waited = simulated(slow, "site", 5), simulated(quick, "site", 5)
    assert waited[0].hours(Book.WAIT_HUMAN) > waited[1].hours(Book.WAIT_HUMAN) + 10
    assert waited[0].ettr < waited[1].ettr


def test_a_replay_convicts_whom_both_rounds_name_and_nobody_else() -> None:
    """By the product's own plan of groups; a job that cannot be cut is not replayed."""

    def fails(stage: int, number: int, group: Sequence[int]) -> bool:
        return 417 in group

    assert convicted_by_replay(1_200, 8, fails) == (417,)
    assert convicted_by_replay(1_200, 8, lambda stage, number, group: False) == ()
    assert convicted_by_replay(1_200, 8, lambda stage, number, group: number < 2) == ()
    assert convicted_by_replay(7, 8, fails) == ()


def test_signals_that_come_late_cost_time_and_a_silent_bystander_is_seen() -> None:
    late = replace(SHORT, signals=Signals(delay_s=600.0))
    found, usual = simulated(late, "site", 5), simulated(SHORT, "site", 5)
    assert found.hours(Book.DETECT) > usual.hours(Book.DETECT) + 3
    noisy = answers_to(fault_of("gpu-memory", Cause.MACHINE, 5), Signals(noise=1.0), 7, 0)
    assert noisy.name.endswith(f"{BYSTANDER} silent")
    verdict = verdict_of(noisy)
    named = {*verdict.nodes, *(gap.subject.node for gap in verdict.not_checked)}
    assert BYSTANDER in named


def test_another_first_move_comes_first_and_then_the_tree() -> None:
    """A restart first evicts fewer, and more stops come again."""
    runs = {name: simulated(SHORT, name, 5) for name in ("site", "reattempt-first")}
    assert runs["reattempt-first"].came_back > runs["site"].came_back
    assert runs["reattempt-first"].actions > runs["site"].actions > 0


def test_a_sites_guards_refuse_as_they_would_for_real(tmp_path: Path) -> None:
    """One node a week: the second swap is refused, and a person is called."""
    guards = tmp_path / "guards.yaml"
    guards.write_text(
        "apiVersion: brctl.dev/v1\nkind: Guards\nblast_radius:\n  - {max_nodes: 1, window: 7d}\n"
    )
    guards.chmod(0o600)
    machines = replace(SHORT, shares={"gpu-memory": 1.0})
    strict = simulated(machines, "site", 5, rules_of(guard_files=[guards]))
    loose = simulated(machines, "site", 5)
    assert loose.refused < strict.refused
    assert strict.pages >= strict.refused > 10
    assert strict.ettr < loose.ettr


def test_rules_travel_to_other_processes() -> None:
    rules = rules_of()
    assert pickle.loads(pickle.dumps(rules)) == rules  # noqa: S301  # our own bytes


def test_a_smaller_blast_radius_asks_people_more_often() -> None:
    bursts = replace(SHORT, shares={"gpu-memory": 1.0}, per_1000_node_days=20.0, standbys=40)
    asked = [
        simulated(bursts, replace(POLICIES["site"], most_nodes=most), 5).refused
        for most in (1, 4, 40)
    ]
    assert asked[0] > asked[1] > asked[2] == 0
