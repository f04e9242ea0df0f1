"""What ranks say: the one that is absent is the cause, the ones that wait are not."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from brctl.evidence.assess import assess
from brctl.evidence.job.assess import assess_job, job_gaps
from brctl.evidence.job.status import read_job
from brctl.model.command import Outcome
from brctl.model.evidence import Role, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import example_job
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value
from brctl.verdict.decide import DecisionContext, decide

JOB = example_job()
NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
WAITING: dict[str, Value] = {"alive": True, "step": 40, "phase": "all_reduce", "phase_age_s": 90.0}
WAITING |= {"progress_age_s": 90.0, "process_state": "S"}


def report(rank: int, **values: Value) -> NodeReport:
    rows = tuple(
        Measurement(f"job.rank.{name}", f"rank:{rank}", value)
        for name, value in (WAITING | values).items()
    )
    return NodeReport(
        JOB.node_of(rank), Outcome.ANSWERED, (CheckResult("job.ranks", ProbeStatus.MEASURED, rows),)
    )


def reports(odd: Mapping[int, Mapping[str, Value]] | None = None) -> list[NodeReport]:
    return [report(rank, **(odd or {}).get(rank, {})) for rank in range(8)]


def test_the_rank_that_never_joined_is_named_and_no_other() -> None:
    answers = reports({5: {"phase": "forward"}})
    status = read_job(JOB, answers)
    (item,) = [e for e in assess_job(status, answers) if e.weight is Weight.CONVICTS]
    assert status.stalled is True
    assert (item.subject.node, item.subject.device) == ("n6", "rank:5")
    assert item.fault is FaultClass.HANG_MISMATCH


def test_a_stopped_process_is_absent_even_where_the_others_wait() -> None:
    answers = reports({2: {"process_state": "T"}})
    found = assess_job(read_job(JOB, answers), answers)
    assert {e.subject.node for e in found if e.weight is Weight.CONVICTS} == {"n3"}


def test_all_ranks_of_one_node_absent_convict_that_node() -> None:
    """Two of eight ranks are more than a fifth, and yet one node of four."""
    job = replace(JOB, nodes=("n1", "n2", "n3", "n4"), ranks_per_node=2)
    rows = [report(rank, **({"process_state": "T"} if rank in (2, 3) else {})) for rank in range(8)]
    answers = [
        NodeReport(job.nodes[i], Outcome.ANSWERED, (*rows[2 * i].results, *rows[2 * i + 1].results))
        for i in range(4)
    ]
    found = assess_job(read_job(job, answers), answers)
    assert {e.subject.node for e in found if e.weight is Weight.CONVICTS} == {"n2"}


def test_half_of_the_ranks_absent_convicts_none_of_them() -> None:
    """A common cause, a data stall say, is not four bad nodes."""
    answers = reports({rank: {"phase": "load"} for rank in range(4)})
    found = assess_job(read_job(JOB, answers), answers)
    assert [e for e in found if e.weight is Weight.CONVICTS] == []


RAISED = (
    """step 10
[rank5]: Traceback (most recent call last):
"""
    + 20
    * """[rank5]:   File "train.py", line 81, in forward
[rank5]:     return self.layers(x)
"""
    + """[rank5]: IndexError: index out of range in self
"""
)


def test_a_rank_that_raised_and_still_lives_points_at_the_code_and_not_at_its_node() -> None:
    """A busy node takes seconds from the exception to the end of the process."""
    answers = reports({5: {"phase": "forward", "last_words": RAISED}, 1: {"exit_status": 1}})
    found = assess_job(read_job(JOB, answers), answers)
    assert [e for e in found if e.weight is Weight.CONVICTS] == []
    (raised,) = [e for e in found if e.kind == "job.rank.raised"]
    assert (raised.weight, raised.fault) == (Weight.HINTS, FaultClass.USER_CODE)
    assert decide(found, (), DecisionContext(NOW, stalled=True))[0].fault is FaultClass.USER_CODE


def test_an_exception_that_was_survived_long_ago_acquits_nobody() -> None:
    words = RAISED + "".join(f"step {n}\n" for n in range(20))
    answers = reports({5: {"phase": "forward", "last_words": words}})
    found = assess_job(read_job(JOB, answers), answers)
    assert {e.subject.node for e in found if e.weight is Weight.CONVICTS} == {"n6"}


def test_a_silent_node_is_convicted_only_while_the_job_stands_still() -> None:
    silent = NodeReport("n4", Outcome.CONNECT_TIMED_OUT, detail="no TCP connection in 5 s")
    stalled = [r if r.node != "n4" else silent for r in reports()]
    (item,) = assess_job(read_job(JOB, stalled), stalled)
    assert (item.subject.node, item.fault) == ("n4", FaultClass.NODE_FAILURE)
    moving = [
        r if r.node != "n4" else silent
        for r in (report(rank, progress_age_s=0.2, phase="forward") for rank in range(8))
    ]
    (item,) = assess_job(read_job(JOB, moving), moving)
    assert (item.subject.node, item.weight) == ("n4", Weight.CLEARS)


def test_a_silent_node_of_a_training_job_is_not_called_dead() -> None:
    """A login that is refused hints at a dead node; steps that need its ranks speak against it."""
    refused = NodeReport("n4", Outcome.REFUSED, detail="connection refused")
    moving = [
        r if r.node != "n4" else refused
        for r in (report(rank, progress_age_s=0.2, phase="forward") for rank in range(8))
    ]
    assessed = assess(refused, {})
    found = (*assessed.evidence, *assess_job(read_job(JOB, moving), moving))
    (verdict,) = decide(found, assessed.gaps, DecisionContext(NOW, JOB.name, 40, stalled=False))
    assert (verdict.fault, verdict.nodes) == (FaultClass.UNKNOWN, ())
    assert verdict.not_checked


def test_a_pause_on_its_way_to_a_stall_is_not_called_health() -> None:
    """Half of `stall_after` without progress: too early for a verdict, too late for no-fault."""
    for age_s, gaps in ((JOB.stall_after_s * 0.4, 0), (JOB.stall_after_s * 0.6, 1)):
        paused = [report(rank, progress_age_s=age_s) for rank in range(8)]
        status = read_job(JOB, paused)
        assert status.stalled is False
        assert len(job_gaps(status, ())) == gaps


def test_a_finished_job_pauses_for_ever() -> None:
    done = [report(rank, phase="done", alive=False, exit_status=0) for rank in range(8)]
    assert job_gaps(read_job(JOB, done), ()) == ()


def test_many_silent_nodes_are_a_switch() -> None:
    answers = [
        NodeReport(r.node, Outcome.UNREACHABLE) if r.node in ("n1", "n2", "n3") else r
        for r in reports()
    ]
    found = assess_job(read_job(JOB, answers), answers)
    assert {e.fault for e in found} == {FaultClass.NETWORK_SWITCH}
    assert all(e.weight is Weight.HINTS for e in found)


def test_a_refused_key_is_our_problem_and_not_the_nodes() -> None:
    answers = [
        replace(r, outcome=Outcome.AUTHENTICATION_FAILED, results=()) if r.node == "n2" else r
        for r in reports()
    ]
    found = assess_job(read_job(JOB, answers), answers)
    assert "n2" not in {e.subject.node for e in found}


def test_the_one_rank_with_a_bad_local_loss_is_named() -> None:
    answers = reports({6: {"loss_finite": False, "progress_age_s": 1.0}})
    found = assess_job(read_job(JOB, answers), answers)
    assert [(e.subject.node, e.fault) for e in found if e.weight is Weight.CONVICTS] == [
        ("n7", FaultClass.NUMERIC_NAN)
    ]


def test_the_rank_whose_loss_was_bad_first_is_named_when_all_are_bad() -> None:
    odd = {rank: {"loss_finite": False, "first_nonfinite_step": 41} for rank in range(8)}
    answers = reports(odd | {6: {"loss_finite": False, "first_nonfinite_step": 40}})
    found = [e for e in assess_job(read_job(JOB, answers), answers) if e.kind == "job.rank.loss"]
    assert [e.subject.node for e in found if e.role is Role.ROOT] == ["n7"]


def test_a_gradient_that_was_no_number_before_the_reduction_names_its_rank() -> None:
    """The loss was still fine in that step; in the next one every rank's is bad."""
    odd = {rank: {"loss_finite": False, "first_nonfinite_step": 41} for rank in range(8)}
    odd[3] |= {"grad_finite": False, "first_nonfinite_grad_step": 40}
    answers = reports(odd)
    found = assess_job(read_job(JOB, answers), answers)
    assert {e.subject.node for e in found if e.weight is Weight.CONVICTS} == {"n4"}
    assert {e.role for e in found if e.kind == "job.rank.loss" and e.subject.node != "n4"} == {
        Role.VICTIM
    }


@pytest.mark.parametrize("steps", [{"first_nonfinite_step": 41}, {}])
def test_ranks_that_turn_bad_together_name_nobody(steps: dict[str, Value]) -> None:
    answers = reports({rank: {"loss_finite": False, **steps} for rank in range(8)})
    found = assess_job(read_job(JOB, answers), answers)
    (root,) = [e for e in found if e.role is Role.ROOT]
    assert (root.fault, root.subject.node) == (FaultClass.NUMERIC_NAN, "")
    (verdict,) = decide(found, (), DecisionContext(NOW, JOB.name, 41, stalled=False))
    assert (verdict.fault, verdict.nodes) == (FaultClass.NUMERIC_NAN, ())


def test_the_straggler_is_the_one_that_waits_least() -> None:
    """Over many steps; in one step alone some rank always does."""
    moving: dict[str, Value] = {"progress_age_s": 0.1, "phase": "forward"}
    waits = [{"wait_s": 0.01 if r == 3 else 2.0} for r in range(8)]
    steps: dict[str, Value] = {"recent_steps": 20, "recent_step_s": 2.5}
    often = [steps | {"recent_wait_s": wait["wait_s"]} for wait in waits]
    answers = [report(r, **(moving | often[r])) for r in range(8)]
    (item,) = assess_job(read_job(JOB, answers), answers)
    assert (item.subject.node, item.fault) == ("n4", FaultClass.STRAGGLER_SLOW)
    assert item.weight is Weight.CONVICTS
    answers = [report(r, **(moving | waits[r])) for r in range(8)]
    (once,) = assess_job(read_job(JOB, answers), answers)
    assert (once.subject.node, once.weight) == ("", Weight.HINTS)


def test_ranks_that_died_waiting_are_victims() -> None:
    answers = reports({rank: {"alive": False, "exit_status": -6} for rank in range(7)})
    found = assess_job(read_job(JOB, answers), answers)
    assert {e.role for e in found if e.kind == "job.rank.exited"} == {Role.VICTIM}


def test_a_job_nobody_could_read_is_not_called_healthy() -> None:
    answers = [NodeReport(node, Outcome.UNREACHABLE) for node in JOB.nodes]
    assert read_job(JOB, answers).stalled is None


def test_ranks_that_all_ended_in_their_common_save_accuse_no_code_of_their_own() -> None:
    """A path that fails under a save ends every rank with an exception of the collective."""
    ended: dict[str, Value] = {"alive": False, "exit_status": 1, "phase": "checkpoint"}
    answers = reports({rank: ended for rank in range(8)})
    found = assess_job(read_job(JOB, answers), answers)
    assert {e.role for e in found if e.kind == "job.rank.exited"} == {Role.VICTIM}
    alone = reports({3: ended})
    (one,) = [e for e in assess_job(read_job(JOB, alone), alone) if e.kind == "job.rank.exited"]
    assert (one.fault, one.weight) == (FaultClass.USER_CODE, Weight.HINTS)


def test_who_ends_in_a_save_after_another_rank_was_killed_is_its_victim() -> None:
    """A save is made together; the killed rank did not come, and that is no fault of the code."""
    ended: dict[str, Value] = {"alive": False, "exit_status": 1, "phase": "checkpoint"}
    killed: dict[str, Value] = {"alive": False, "exit_status": -9, "phase": "forward"}
    answers = reports({3: ended, 5: killed})
    found = assess_job(read_job(JOB, answers), answers)
    roles = {e.subject.device: e.role for e in found if e.kind == "job.rank.exited"}
    assert roles["rank:3"] is Role.VICTIM
