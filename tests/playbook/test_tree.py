"""The decision tree climbs from cheap to dear and never proposes what does not fit."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

import brctl
from brctl.library.playbooks import load_playbooks
from brctl.library.shipped import shipped_dir
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import Action, Branch, FaultClass
from brctl.model.fault_catalogue import CATALOGUE
from brctl.model.verdict import Confidence, Suspect, Verdict
from brctl.playbook.proposals import why_not
from brctl.playbook.recommend import case_of, recommend
from brctl.playbook.tree import (
    FALLBACK,
    TREE,
    WITHOUT_JOB,
    IncidentHistory,
    branch_of,
    describe_tree,
    next_move,
)
from tests.fakes.run_context import example_verdict

TAKES_NODES = (Action.SWAP, Action.CORDON, Action.EVICT_GROUP)
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
        (FaultClass.NETWORK_IB, SURE, True, ("swap-and-resume",), 2, "stop-time-checks"),
        (FaultClass.NETWORK_SWITCH, SURE, True, (), 2, ""),
        (FaultClass.USER_CODE, SURE, False, (), 1, "restart-in-place"),
        (FaultClass.USER_CODE, SURE, False, ("restart-in-place",), 1, ""),
        (FaultClass.PREEMPTION_SIGTERM, SURE, False, (), 1, "restart-in-place"),
        (FaultClass.SILENT_CORRUPTION, SURE, True, (), 1, "swap-and-resume"),
        (FaultClass.SILENT_CORRUPTION, HALF, True, (), 1, "locate-corruption"),
        (FaultClass.SILENT_CORRUPTION, WEAK, True, (), 1, "locate-corruption"),
        (FaultClass.SILENT_CORRUPTION, HALF, True, ("locate-corruption",), 1, "swap-and-resume"),
        (FaultClass.NUMERIC_NAN, HALF, True, (), 1, "locate-corruption"),
        (FaultClass.NUMERIC_NAN, SURE, True, (), 1, "locate-corruption"),
        (FaultClass.NUMERIC_NAN, HALF, True, ("locate-corruption",), 1, ""),
        (FaultClass.HANG_MISMATCH, SURE, True, (), 1, "restart-in-place"),
        (FaultClass.HANG_MISMATCH, SURE, True, ("restart-in-place",), 1, "swap-and-resume"),
        (FaultClass.HANG_MISMATCH, HALF, True, ("restart-in-place",), 1, "group-evict"),
        (FaultClass.HANG_MISMATCH, WEAK, True, (), 1, "stop-time-checks"),
        (
            FaultClass.HANG_MISMATCH,
            HALF,
            True,
            ("restart-in-place", "group-evict"),
            1,
            "stop-time-checks",
        ),
        (FaultClass.UNKNOWN, WEAK, False, (), 1, "stop-time-checks"),
        (FaultClass.UNKNOWN, WEAK, False, ("stop-time-checks", "restart-in-place"), 1, "replay"),
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
    incident = IncidentHistory(tried, alerts, repeated=bool(tried))
    found = next_move(case_of(verdict(fault, probability, nodes=nodes)), incident)
    assert found.playbook == playbook


def test_every_playbook_of_the_tree_ships() -> None:
    """The tree never sends anybody to a file that is not there."""
    assert {row.playbook for row in (*TREE, *FALLBACK)} - {""} <= set(PLAYBOOKS)


LADDER = ["stop-time-checks", "restart-in-place"]


@pytest.mark.parametrize(
    ("fault", "changed", "ladder"),
    [
        (FaultClass.GPU_LOST, True, ["swap-and-resume", *LADDER, "code-rollback", "replay"]),
        (FaultClass.GPU_LOST, False, ["swap-and-resume", *LADDER, "replay"]),
        (FaultClass.NETWORK_LINK, True, ["swap-and-resume", *LADDER, "code-rollback", "replay"]),
        (FaultClass.USER_CODE, True, ["code-rollback", *LADDER, "replay"]),
        (FaultClass.USER_CODE, False, ["restart-in-place"]),
        (FaultClass.GPU_OOM, True, ["code-rollback", *LADDER, "replay"]),
        (FaultClass.PREEMPTION_SIGTERM, True, ["restart-in-place"]),
        (FaultClass.NUMERIC_NAN, True, ["locate-corruption", "code-rollback"]),
        (FaultClass.NUMERIC_NAN, False, ["locate-corruption"]),
        (FaultClass.UNKNOWN, False, [*LADDER, "replay"]),
        (FaultClass.HANG_MISMATCH, True,
         ["restart-in-place", "swap-and-resume", "group-evict", "stop-time-checks",
          "code-rollback", "replay"]),
        (FaultClass.STRAGGLER_SLOW, False,
         ["restart-in-place", "swap-and-resume", "group-evict", "stop-time-checks", "replay"]),
        (FaultClass.STORAGE_CHECKPOINT, True, []),
        (FaultClass.DISK_FULL, True, []),
    ],
)  # fmt: skip
def test_a_fault_that_comes_back_climbs_from_cheap_to_dear(
    fault: FaultClass, changed: bool, ladder: list[str]
) -> None:
    """Failure after failure, until a person must look; nothing is tried twice."""
    assert climb(verdict(fault), IncidentHistory(alerts=2, changed=changed)) == ladder


def climb(about: Verdict, incident: IncidentHistory) -> list[str]:
    """What is proposed when nothing of it helps."""
    tried: list[str] = []
    while playbook := next_move(
        case_of(about), replace(incident, tried=tuple(tried), repeated=bool(tried))
    ).playbook:
        assert playbook not in tried
        tried.append(playbook)
    return tried


@pytest.mark.parametrize(("fault", "probability"), list(product(FaultClass, (SURE, HALF, WEAK))))
def test_every_playbook_on_the_way_accepts_the_fault_and_the_way_ends(
    fault: FaultClass, probability: float
) -> None:
    """`fix` is never refused by the playbook that its own tree names."""
    for nodes, alerts, changed, job, stalled in product(
        (True, False), (1, 2), (True, False), ("", "llm"), (True, False, None)
    ):
        about = replace(verdict(fault, probability, nodes=nodes), job=job, stalled=stalled)
        for playbook in climb(about, IncidentHistory(alerts=alerts, changed=changed)):
            assert why_not(PLAYBOOKS[playbook], about) is None


def test_every_branch_has_a_class_and_every_class_a_branch() -> None:
    """No move of the tree is out of reach, and no class is without one."""
    assert {branch_of(fault) for fault in FaultClass} == set(Branch)
    assert {move.branch for move in (*TREE, *FALLBACK)} == set(Branch)
    assert set(CATALOGUE) == set(FaultClass)


def test_without_a_job_nothing_that_restarts_one_is_proposed() -> None:
    """A sure machine without a job is only taken out of service; anything else is a person's."""
    needs_job = {name for name, book in PLAYBOOKS.items() if book.inputs.get("job")}
    for fault in FaultClass:
        alone = replace(verdict(fault), job="")
        proposed = climb(alone, IncidentHistory(alerts=2, changed=True))
        assert not set(proposed) & needs_job, fault
        assert set(proposed) <= WITHOUT_JOB
    assert climb(replace(verdict(FaultClass.GPU_LOST), job=""), IncidentHistory()) == ["cordon"]


def test_a_job_that_advances_is_not_stopped_for_a_guess() -> None:
    """Nothing surely named and training goes on: the next move is to look again, not to stop it."""
    for fault in (FaultClass.UNKNOWN, FaultClass.GPU_LOST, FaultClass.NUMERIC_NAN):
        going = replace(verdict(fault, WEAK), stalled=False)
        assert recommend(going).action is Action.WATCH
        numbers = fault is FaultClass.NUMERIC_NAN
        first = "locate-corruption" if numbers else "stop-time-checks"
        assert recommend(replace(going, stalled=True)).playbook == first
    assert recommend(replace(verdict(FaultClass.GPU_LOST), stalled=False)).action is Action.SWAP


def test_a_sound_machine_is_evicted_only_after_its_rank_hung_there_again() -> None:
    """Code hangs a rank of a healthy machine: nothing but its own ranks speaks against the node."""
    hang = verdict(FaultClass.HANG_MISMATCH)
    assert recommend(hang).playbook == "restart-in-place"
    elsewhere = IncidentHistory(("restart-in-place",))
    assert recommend(hang, elsewhere).playbook == "stop-time-checks"
    assert recommend(hang, replace(elsewhere, repeated=True)).playbook == "swap-and-resume"


@pytest.mark.parametrize(
    "of_machine",
    [
        Evidence("gpu.driver.hang", Subject("n3"), Weight.HINTS, FaultClass.DRIVER_FIRMWARE,
                 Role.ROOT, "gpu.ecc", "driver hang"),
        Evidence("job.rank.process_state", Subject("n3", "rank:2"), Weight.CONTEXT, None,
                 Role.CONTEXT, "job.ranks", "state D", "job.rank.process_state rank:2 D"),
    ],
)  # fmt: skip
def test_a_hang_beside_a_sign_of_the_machine_is_a_swap_at_once(of_machine: Evidence) -> None:
    base = verdict(FaultClass.HANG_MISMATCH)
    signed = replace(base, suspects=(Suspect("n3"),), evidence=(of_machine,))
    assert recommend(signed).playbook == "swap-and-resume"
    elsewhere = replace(of_machine, subject=Subject("n4"))
    assert recommend(replace(signed, evidence=(elsewhere,))).playbook == "restart-in-place"


def test_a_rank_of_a_job_that_makes_steps_may_be_blocked_for_a_moment() -> None:
    """It writes its files: a slow rank seen in state D once is no reason to swap its machine."""
    blocked = Evidence(
        "job.rank.process_state", Subject("n3", "rank:2"), Weight.CONTEXT, None,
        Role.CONTEXT, "job.ranks", "state D", "job.rank.process_state rank:2 D",
    )  # fmt: skip
    slow = verdict(FaultClass.STRAGGLER_SLOW)
    slow = replace(slow, suspects=(Suspect("n3"),), evidence=(blocked,), stalled=False)
    assert recommend(slow).playbook == "restart-in-place"


def test_a_first_failure_is_not_said_to_be_another_one() -> None:
    """Words of a second failure belong to moves that follow a playbook."""
    for move in (*TREE, *FALLBACK):
        again = any(words in move.say for words in ("did not help", "again after", "came back"))
        assert not again or move.after or move.repeated or move.alerts > 1, move.say


def test_every_playbook_that_proves_progress_counts_from_where_the_job_had_stopped() -> None:
    """Steps beyond the checkpoint alone would prove a job that falls at the same step each time."""
    proofs = [
        (name, step.arguments)
        for name, playbook in PLAYBOOKS.items()
        for step in playbook.steps
        if step.uses == "job.wait_progress"
    ]
    assert len(proofs) >= 10
    for name, arguments in proofs:
        assert arguments["stopped_at"] == ["$(steps.stop.out.step)", "$(verdict.job_step)"], name


def test_a_job_that_advances_is_stopped_only_for_what_is_worth_it() -> None:
    """A sure bad GPU is; code that printed an error, or a cause nobody knows, is not."""
    for fault in FaultClass:
        going = replace(verdict(fault), stalled=False)
        proposed = climb(going, IncidentHistory(alerts=2, changed=True))
        assert bool(proposed) is CATALOGUE[fault].worth_stopping, fault


def test_no_playbook_that_only_stops_is_for_a_job_that_advances_and_is_not_worth_it() -> None:
    """Asked for by name it is refused as well; a straggler is worth the stop."""
    restart = PLAYBOOKS["restart-in-place"]
    going = replace(verdict(FaultClass.USER_CODE), stalled=False)
    assert "took steps when V-1 was decided" in (why_not(restart, going) or "")
    assert why_not(restart, replace(going, stalled=True)) is None
    assert why_not(restart, replace(going, fault=FaultClass.STRAGGLER_SLOW)) is None


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


@pytest.mark.parametrize("tried", [(), ("locate-corruption",), ("locate-corruption", "replay")])
@pytest.mark.parametrize("probability", [SURE, HALF, WEAK])
def test_a_nan_of_one_rank_takes_its_node_by_no_way(
    probability: float, tried: tuple[str, ...]
) -> None:
    """Its batch may be bad: only what computed wrongly on that machine takes it."""
    history = IncidentHistory(tried=tried, alerts=3, repeated=True)
    move = next_move(case_of(verdict(FaultClass.NUMERIC_NAN, probability)), history)
    assert move.do not in TAKES_NODES
