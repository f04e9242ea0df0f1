"""Who keeps a job waiting: the absent are named, those at long work and the unreachable are not."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from brctl.engine.job.conclude import JobFindings, assess_hang, conclude, hangs
from brctl.evidence.flight.node_evidence import assess_flight
from brctl.evidence.job.assess import assess_job, job_gaps
from brctl.evidence.job.ends import exits, first_ends, leaving
from brctl.evidence.job.long_phases import at_work, excused, long_phase
from brctl.evidence.job.missing import left_over, who_waits
from brctl.evidence.job.status import goes_on, with_stacks
from brctl.evidence.stacks.analyse import analyse_stacks
from brctl.evidence.stacks.node_evidence import assess_stacks
from brctl.evidence.stacks.snapshot import RankStack
from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Subject, Weight
from brctl.model.evidence_kinds import GONE_FIRST, KILLED_FIRST
from brctl.model.fault import FaultClass
from brctl.model.inventory import Inventory, Node
from brctl.model.jobs.hang import FlightRecorderAnalysis, SuspectRank, SuspectReason
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.sweeps.report import NodeReport
from brctl.model.verdict import Verdict
from tests.fakes.nodes import NOW, clear, sweep_of

JOB = example_job()
SYNC = ("distributed_c10d.py:all_reduce", "train.py:step")


def stalled(odd: Mapping[int, Mapping[str, object]], silent: tuple[str, ...] = ()) -> JobStatus:
    """Everybody waits in all_reduce for 70 s, but for the odd ones; silent nodes say nothing."""
    views = []
    for rank in range(8):
        view = RankView(rank, JOB.node_of(rank))
        if view.node not in silent:
            view = replace(view, alive=True, step=40, phase="all_reduce", phase_age_s=70.0)
            view = replace(view, progress_age_s=70.0, process_state="S")
        views.append(replace(view, **odd.get(rank, {})))  # type: ignore[arg-type]  # by name
    return JobStatus(JOB, tuple(views), 40, 70.0, stalled=True, silent=silent)


def convicted(evidence: tuple[Evidence, ...]) -> set[tuple[str, FaultClass | None]]:
    return {(e.subject.node, e.fault) for e in evidence if e.weight is Weight.CONVICTS}


def test_no_rank_is_compared_with_each_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten thousand ranks that is most of what a diagnosis takes."""
    status = stalled({3: {"phase": "forward"}})

    def compare(view: RankView, other: object) -> bool:
        raise AssertionError(f"{view} compared with {other}")

    monkeypatch.setattr(RankView, "__eq__", compare)
    waiting, absent = who_waits(status)
    assert ([view.rank for view in waiting], [view.rank for view in absent]) == (
        [0, 1, 2, 4, 5, 6, 7],
        [3],
    )


EVALUATION = ("scaled_dot.py:forward", "model.py:forward", "train.py:evaluate", "train.py:main")
SAVING = ("serialization.py:_write", "serialization.py:save", "state.py:dump", "train.py:main")
COMPILING = ("codecache.py:load", "compile_fx.py:compile_fx", "convert_frame.py:__call__")


@pytest.mark.parametrize(
    ("rank", "view", "phase"),
    [
        (0, {"phase": "evaluation", "phase_age_s": 26.0}, "evaluation"),
        (3, {"phase": "optimizer", "stack": EVALUATION}, "evaluation"),
        (0, {"phase": "checkpoint", "phase_age_s": 90.0, "phase_longest_s": 60.0}, "checkpoint"),
        (7, {"phase": "forward", "stack": SAVING}, "checkpoint"),
        (5, {"phase": "forward", "stack": COMPILING}, "compile"),
        (2, {"phase": "load", "phase_age_s": 70.0, "phase_longest_s": 50.0}, "load"),
    ],
)
def test_a_rank_at_long_work_convicts_no_node(
    rank: int, view: Mapping[str, object], phase: str
) -> None:
    """By progress file, stack or dump: it is at work, and until it is done nobody knows."""
    status = stalled({rank: view})
    assert long_phase(status.ranks[rank]) == phase
    (item,) = assess_job(status, ())
    assert (item.weight, item.subject.node) == (Weight.HINTS, "")
    stacks = [RankStack(r, EVALUATION if r == rank else SYNC) for r in range(8)]
    observed = assess_stacks(analyse_stacks(stacks, JOB), JOB, excused(status))
    never = SuspectRank(rank, SuspectReason.NEVER_JOINED, "0", 3, (1,), "", JOB.node_of(rank))
    dumped = assess_flight(
        FlightRecorderAnalysis((), (never,), (), common_cause=False), excused(status)
    )
    assert {e.weight for e in (*observed, *dumped)} == {Weight.CONTEXT}
    assert [gap.subject.device for gap in job_gaps(status, ())] == [f"rank:{rank}"]


@pytest.mark.parametrize(
    ("rank", "view"),
    [
        (0, {"phase": "checkpoint", "phase_age_s": 90.0, "phase_longest_s": 2.0}),
        (6, {"phase": "evaluation", "phase_age_s": 500.0, "phase_longest_s": 30.0}),
        (4, {"phase": "forward", "stack": ("layers.py:forward", "train.py:step")}),
        (1, {"phase": "evaluation", "process_state": "T"}),
    ],
)
def test_work_that_takes_longer_than_ever_is_a_hang(rank: int, view: Mapping[str, object]) -> None:
    status = stalled({rank: view})
    assert convicted(assess_job(status, ())) == {(JOB.node_of(rank), FaultClass.HANG_MISMATCH)}
    assert job_gaps(status, ()) == ()


def test_the_forward_pass_of_a_checkpointed_layer_saves_nothing() -> None:
    """torch.utils.checkpoint and the frame evaluator of dynamo only sound like long work."""
    for frame in ("checkpoint.py:checkpoint", "eval_frame.py:_fn", "module.py:eval"):
        view = RankView(0, "n1", alive=True, phase="forward", stack=(frame, "train.py:step"))
        assert long_phase(view) == ""


def test_a_rank_in_the_jobs_own_code_is_said_to_be() -> None:
    """The machine is named as before, and the reader learns that a restart tells more."""
    hook = "hooks.py:wait_for_ever"
    stacks = [RankStack(5, (hook, "train.py:step"), own_frame=hook)]
    status = with_stacks(stalled({5: {"phase": "backward"}}), stacks)
    found = assess_job(status, ())
    assert convicted(found) == {("n6", FaultClass.HANG_MISMATCH)}
    (own,) = [e for e in found if e.kind == "job.rank.own-code"]
    assert (own.weight, own.fault, own.subject.node) == (
        Weight.CONTEXT, FaultClass.USER_CODE, "n6",
    )  # fmt: skip
    assert hook in own.text


ABORTED = {"alive": False, "exit_status": -6, "process_state": None}
SAMPLER = "sampler.py:pack"


def but_one_aborted(end: Mapping[str, object] = ABORTED) -> JobStatus:
    """Rank 5 loads; all others waited for it, and their watchdogs ended them."""
    gone = {rank: end for rank in range(8) if rank != 5}
    return stalled({**gone, 5: {"phase": "load", "process_state": "R"}})


def test_where_watchdogs_ended_the_others_the_one_left_over_is_looked_at() -> None:
    """It says that it loads, and computes in the job's own code: it waits for no loader."""
    status = but_one_aborted()
    assert hangs(status, ())
    status, looked = assess_hang(status, [RankStack(5, (SAMPLER,), own_frame=SAMPLER)])
    assert looked == ((), ())
    found = assess_job(status, ())
    assert convicted(found) == {("n6", FaultClass.HANG_MISMATCH)}
    assert {e.kind for e in found if e.fault is FaultClass.USER_CODE} == {"job.rank.own-code"}


def test_long_work_that_outlasted_the_others_watchdogs_is_a_lead_on_its_node() -> None:
    status = but_one_aborted()
    views = (
        replace(view, phase="evaluation", phase_age_s=1900.0) if view.alive else view
        for view in status.ranks
    )
    found = assess_job(replace(status, ranks=tuple(views)), ())
    (item,) = [e for e in found if e.fault is FaultClass.HANG_MISMATCH]
    assert (item.subject.node, item.weight) == ("n6", Weight.HINTS)


@pytest.mark.parametrize(
    "end", [{**ABORTED, "exit_status": -9}, {**ABORTED, "exit_status": 137},
            {**ABORTED, "phase": "forward"}, {**ABORTED, "exit_status": 0}],
    ids=["killed", "killed under a shell", "crashed", "left"],
)  # fmt: skip
def test_where_the_others_ended_otherwise_the_one_left_over_holds_nobody_up(
    end: Mapping[str, object],
) -> None:
    assert not hangs(but_one_aborted(end), ())


@pytest.mark.parametrize(
    "held", [{"process_state": "T"}, {"process_state": "t"},
             {"process_state": "D", "kernel_wait": "__refrigerator"},
             {"process_state": "S", "kernel_wait": "do_freezer_trap"}],
)  # fmt: skip
@pytest.mark.parametrize("phase", ["load", "all_reduce", "evaluation"])
def test_a_process_that_somebody_holds_is_the_absent_one_wherever_it_stands(
    phase: str, held: Mapping[str, object]
) -> None:
    """By a signal, a debugger or the freezer: it waits neither for its batch nor for its peers."""
    found = assess_job(stalled({5: {"phase": phase, **held}}), ())
    assert convicted(found) == {("n6", FaultClass.HANG_MISMATCH)}
    (item,) = [e for e in found if e.weight is Weight.CONVICTS]
    assert RankView(5, "n6", **held).stopped_by in item.text  # type: ignore[arg-type]  # by name


def silent(node: str, outcome: Outcome) -> tuple[NodeReport, ...]:
    return (NodeReport(node, outcome, detail="so it went"),)


@pytest.mark.parametrize("outcome", [Outcome.LOGIN_TIMED_OUT, Outcome.REFUSED, Outcome.DIED])
def test_a_node_that_takes_connections_is_not_dead_while_another_holds_the_job_up(
    outcome: Outcome,
) -> None:
    """Its sshd hangs, or is down; the rank that never joined is on another node."""
    status = stalled({6: {"phase": "backward"}}, silent=("n3",))
    found = assess_job(status, silent("n3", outcome))
    assert convicted(found) == {("n7", FaultClass.HANG_MISMATCH)}
    (hint,) = [e for e in found if e.kind == "job.node.silent"]
    assert (hint.weight, hint.subject.node) == (Weight.HINTS, "n3")


@pytest.mark.parametrize("outcome", [Outcome.CONNECT_TIMED_OUT, Outcome.UNREACHABLE])
def test_a_node_nothing_reaches_is_dead_whatever_else_stands_still(outcome: Outcome) -> None:
    status = stalled({6: {"phase": "backward"}}, silent=("n3",))
    assert ("n3", FaultClass.NODE_FAILURE) in convicted(assess_job(status, silent("n3", outcome)))


def test_a_frozen_node_is_convicted_when_all_others_wait() -> None:
    """It takes connections, but the only ranks that nobody can account for are its own."""
    status = stalled({}, silent=("n3",))
    found = assess_job(status, silent("n3", Outcome.LOGIN_TIMED_OUT))
    assert convicted(found) == {("n3", FaultClass.NODE_FAILURE)}
    assert excused(status) == {2}


def test_a_job_that_came_further_between_two_looks_did_not_stand_still() -> None:
    first = stalled({0: {"phase": "evaluation"}})
    moved = replace(first, stalled=False, ranks=tuple(replace(v, step=41) for v in first.ranks))
    assert goes_on(first, moved)
    assert not goes_on(first, first)
    assert not goes_on(first, replace(first, stalled=False))
    assert at_work(first)


def test_a_node_whose_ranks_never_came_is_where_it_began() -> None:
    """The launcher left it out: no process, no status, no progress; all others wait."""
    views = tuple(
        RankView(rank, JOB.node_of(rank), alive=rank != 2, step=0, phase="all_reduce")
        for rank in range(8)
    )
    gone = replace(views[2], step=None, phase=None)
    status = JobStatus(JOB, (*views[:2], gone, *views[3:]), 0, 60.0, stalled=True, silent=())
    (item,) = first_ends(status)
    assert (item.kind, item.subject) == (GONE_FIRST, Subject(JOB.node_of(2), "rank:2"))


PEER_LOST = """[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 9, in step
[rank0]: RuntimeError: Connection closed by peer [10.0.0.4]:62104
"""
WATCHDOG_ABORTS = "terminate called after throwing an instance of 'c10::DistBackendError'"
UNRECORDED: Mapping[str, object] = {"alive": False, "exit_status": None, "process_state": "Z"}


@pytest.mark.parametrize("words", [PEER_LOST, WATCHDOG_ABORTS])
def test_a_rank_whose_end_is_not_recorded_yet_and_that_said_why_did_not_end_first(
    words: str,
) -> None:
    """A starter on a busy host had not collected it: it was taken for the first to be gone."""
    lost = {**UNRECORDED, "last_words": words}
    failed = {"alive": False, "exit_status": 1, "phase": "forward"}
    status = stalled({0: lost, 2: failed})
    assert list(first_ends(status)) == []
    assert [item.subject.node for item in exits(status)] == ["n3"]


def test_where_one_was_killed_it_began_however_many_others_are_not_collected() -> None:
    lost = {**UNRECORDED, "last_words": PEER_LOST}
    status = stalled({0: lost, 5: lost, 2: {"alive": False, "exit_status": -9}})
    (item,) = first_ends(status)
    assert (item.kind, item.subject.node) == (KILLED_FIRST, "n3")


def test_the_rank_that_raised_is_a_place_before_its_end_is_recorded() -> None:
    status = stalled({2: {**UNRECORDED, "phase": "forward", "last_words": PEER_LOST}})
    assert list(first_ends(status)) == []
    (item,) = leaving(status)
    assert (item.subject, item.fault) == (Subject("n3", "rank:2"), FaultClass.USER_CODE)


RECEIVES = ("distributed_c10d.py:recv", "schedules.py:recv_forward", "train.py:step")
OWN = ("cache.py:lock", "train.py:step")


def test_stages_that_wait_for_another_are_not_missing() -> None:
    """Neighbours of a stuck stage, or of a silent node, stand in receives and not in the sync."""
    beside = {"phase": "forward", "stack": RECEIVES}
    stuck = stalled({2: beside, 4: {"phase": "forward", "stack": OWN}})
    assert {node for node, _ in convicted(assess_job(stuck, ()))} == {JOB.node_of(4)}
    silent = stalled({2: beside}, silent=(JOB.node_of(6),))
    assert {node for node, _ in convicted(assess_job(silent, ()))} == {JOB.node_of(6)}
    alone = stalled({2: beside})
    assert {node for node, _ in convicted(assess_job(alone, ()))} == {JOB.node_of(2)}


def test_of_several_stages_that_all_wait_for_another_none_is_convicted() -> None:
    """Two that both sent had stopped four, and all four were named HIGH."""
    sends = {"phase": "forward", "stack": ("distributed_c10d.py:send", "train.py:main")}
    found = assess_job(stalled({2: sends, 3: sends}), ())
    assert not convicted(found)
    assert {e.subject.node for e in found if e.weight is Weight.HINTS} >= {"n3", "n4"}


@pytest.mark.parametrize("outcome", [Outcome.COMMAND_TIMED_OUT, Outcome.DIED])
def test_a_stage_may_wait_for_a_node_where_a_login_worked_and_then_hung(outcome: Outcome) -> None:
    """Its ranks may hang as well, or one command took long there: neither is named."""
    status = stalled({2: {"phase": "forward", "stack": RECEIVES}}, silent=("n7",))
    found = assess_job(status, silent("n7", outcome))
    assert not convicted(found)
    assert {e.subject.node for e in found if e.weight is Weight.HINTS} == {"n7"}
    alone = assess_job(stalled({}, silent=("n7",)), silent("n7", outcome))
    assert convicted(alone) == {("n7", FaultClass.NODE_FAILURE)}


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.LOGIN_TIMED_OUT])
@pytest.mark.parametrize("frame", ["connection.py:Connection.recv", "adapters.py:HTTPAdapter.send"])
def test_a_pipe_and_an_http_client_wait_for_no_other_rank(outcome: Outcome, frame: str) -> None:
    """Stuck in one a rank was excused, and the node that only refuses SSH convicted instead."""
    stuck = {"phase": "forward", "stack": (frame, "train.py:step")}
    found = assess_job(stalled({2: stuck}, silent=("n7",)), silent("n7", outcome))
    assert convicted(found) == {("n3", FaultClass.HANG_MISMATCH)}


def test_a_stage_that_waits_beside_a_node_whose_kernel_runs_is_a_hint_as_the_node_is() -> None:
    """It may wait for that node, or for nobody: sshd is down there, which says little."""
    status = stalled({2: {"phase": "forward", "stack": RECEIVES}}, silent=("n7",))
    found = assess_job(status, silent("n7", Outcome.REFUSED))
    assert not convicted(found)
    hinted = {e.subject.node for e in found if e.weight is Weight.HINTS}
    assert hinted == {"n3", "n7"}
    gone = assess_job(status, silent("n7", Outcome.UNREACHABLE))
    assert {node for node, _ in convicted(gone)} == {"n7"}


@pytest.mark.parametrize("phase", ["forward", "all_reduce"])
def test_one_file_from_before_a_rollback_hides_no_stuck_rank(phase: str) -> None:
    """On a full disk it could not be written since; what one node says is the newest of no job."""
    left = {"step": 5000, "phase": phase, "phase_age_s": 9000.0}
    status = replace(stalled({2: {"phase": "forward"}, 6: left}), step=5000)
    assert convicted(assess_job(status, ())) == {("n3", FaultClass.HANG_MISMATCH)}


def test_a_file_of_many_steps_ago_tells_nothing_of_now() -> None:
    """Its rank took part in every step since; a step behind is where a rank may hang."""
    old = {"phase": "forward", "step": 20, "phase_age_s": 900.0}
    assert not convicted(assess_job(stalled({2: old}), ()))
    assert convicted(assess_job(stalled({2: {**old, "step": 39}}), ()))


def test_where_few_wait_one_old_file_does_not_hide_those_that_hang() -> None:
    """The median of two files, one from before a rollback, is the step of nobody."""
    hang = {"phase": "forward", "stack": OWN}
    left = {"step": 5000, "phase_age_s": 9000.0}
    waits = {"phase": "forward", "stack": RECEIVES}
    odd = {rank: waits for rank in (1, 3, 4, 5, 7)}
    found = assess_job(stalled({**odd, 2: hang, 6: left}), ())
    assert convicted(found) == {("n3", FaultClass.HANG_MISMATCH)}


def test_a_stage_left_over_is_missing_where_the_silent_nodes_kernel_runs() -> None:
    """It was excused by a node that only refuses logins, as by a dead one."""
    gone = {rank: ABORTED for rank in range(8) if rank not in (2, 6)}
    status = stalled({**gone, 2: {"phase": "forward", "stack": RECEIVES}}, silent=("n7",))
    refused = {report.node: report for report in silent("n7", Outcome.REFUSED)}
    assert [view.rank for view in left_over(status, refused)] == [2]
    dead = {report.node: report for report in silent("n7", Outcome.UNREACHABLE)}
    assert left_over(status, dead) == []
    assert (hangs(status, refused.values()), hangs(status, dead.values())) == (True, False)


def test_a_dump_that_shows_who_never_joined_says_more_than_a_missing_one() -> None:
    """The second may only not have been fetched; alone it is all there is."""
    never = SuspectRank(2, SuspectReason.NEVER_JOINED, "0", 7, (0, 1), "", "n2")
    missing = SuspectRank(4, SuspectReason.NO_DUMP, "0", 7, (0, 1), "", "n3")
    both = FlightRecorderAnalysis((), (never, missing), (), common_cause=False)
    assert [e.weight for e in assess_flight(both)] == [Weight.HINTS, Weight.CONTEXT]
    alone = FlightRecorderAnalysis((), (missing,), (), common_cause=False)
    assert [e.weight for e in assess_flight(alone)] == [Weight.HINTS]


@pytest.mark.parametrize("wait", ["folio_wait_bit_common", "jbd2_log_wait_commit", "rpc_wait_bit"])
def test_a_rank_that_its_disk_keeps_from_the_others_is_the_storages(wait: str) -> None:
    """Longer in its save than ever before, it was hang-mismatch at 0.94 and its node swapped."""
    stuck = {"phase": "checkpoint", "phase_longest_s": 8.0, "stack": SAVING}
    stuck |= {"process_state": "D", "kernel_wait": wait}
    status = stalled({2: stuck})
    assert convicted(assess_job(status, ())) == {(JOB.node_of(2), FaultClass.STORAGE_CHECKPOINT)}
    stacks = [RankStack(rank, SAVING if rank == 2 else SYNC) for rank in range(8)]
    assert not convicted(assess_hang(status, stacks)[1][0])
    assert {e.weight for e in assess_hang(status, stacks)[1][0]} == {Weight.CONTEXT}


def test_a_rank_that_waits_in_its_kernel_for_its_driver_is_not_the_storages() -> None:
    stuck = {"phase": "forward", "process_state": "D", "kernel_wait": "nvidia_poll"}
    accused = convicted(assess_job(stalled({2: stuck}), ()))
    assert accused == {(JOB.node_of(2), FaultClass.HANG_MISMATCH)}


def concluded(status: JobStatus) -> Verdict:
    """The first verdict of a job all of whose nodes answer and are sound."""
    sweep = sweep_of(*(clear(node) for node in JOB.nodes))
    fleet = Inventory({name: Node(name, "x") for name in JOB.nodes})
    stacks = [RankStack(rank, OWN if rank == 2 else SYNC) for rank in range(8)]
    status, looked = assess_hang(status, stacks)
    found = (*assess_job(status, ()), *looked[0])
    return conclude(sweep, JobFindings(status, (found, ())), fleet, NOW)[0]


def blocked(wait: str, phase: str = "forward") -> JobStatus:
    return stalled({2: {"phase": phase, "process_state": "D", "kernel_wait": wait}})


@pytest.mark.parametrize(
    "wait",
    ["call_rwsem_down_write_failed", "rwsem_down_write_slowpath", "call_usermodehelper_exec",
     "nv_poll_wait", "nvidia_poll", "os_acquire_rwlock_write", "migration_entry_wait_on_locked",
     "synchronize_rcu_expedited", "usb_kill_urb", "ib_uverbs_write", "conn_rpc_wait"],
)  # fmt: skip
@pytest.mark.parametrize("phase", ["forward", "checkpoint"])
def test_a_wait_in_a_driver_is_no_file_systems_whatever_letters_its_name_has(
    wait: str, phase: str
) -> None:
    """`call_` holds `ll_`: a hang in a driver was storage-checkpoint at 0.94 and named nobody."""
    status = blocked(wait, phase)
    assert not [e for e in assess_job(status, ()) if e.fault is FaultClass.STORAGE_CHECKPOINT]
    assert excused(status) <= set(at_work(status))
    if phase == "forward":
        verdict = concluded(status)
        assert (verdict.fault, verdict.nodes) == (FaultClass.HANG_MISMATCH, (JOB.node_of(2),))


@pytest.mark.parametrize(
    "wait",
    ["rpc_wait_bit_killable", "__rpc_execute", "nfs_wait_on_request", "nfs4_delay_killable",
     "ll_file_io_generic", "cl_sync_io_wait", "ldlm_completion_ast", "ptlrpc_set_wait",
     "osc_extent_wait", "request_wait_answer", "ceph_mdsc_wait_request", "cxiWaitEventWait"],
)  # fmt: skip
def test_a_file_server_that_one_rank_waits_for_is_named_for_its_place_only(wait: str) -> None:
    """One chain said that its node is to blame, and that its machine is not."""
    verdict = concluded(blocked(wait))
    assert (verdict.fault, verdict.nodes) == (FaultClass.STORAGE_CHECKPOINT, ())
    assert [place.node for place in verdict.places] == [JOB.node_of(2)]
    (said,) = [e.text for e in verdict.evidence if e.kind == "job.rank.absent"]
    assert "waits for a file server or daemon" in said


@pytest.mark.parametrize("wait", ["xfs_log_force", "jbd2_log_wait_commit", "__ext4_handle_dirty"])
def test_a_rank_that_its_nodes_own_disk_keeps_has_its_node_named(wait: str) -> None:
    """It was storage-checkpoint at 0.94 and no node."""
    verdict = concluded(blocked(wait))
    assert (verdict.fault, verdict.nodes) == (FaultClass.STORAGE_CHECKPOINT, (JOB.node_of(2),))


@pytest.mark.parametrize("wait", ["folio_wait_bit_common", "io_schedule", "wait_on_page_bit"])
def test_a_page_is_storages_only_where_files_are_read_or_written(wait: str) -> None:
    """Swap and a migration wait for pages as well, in any phase."""
    swaps = concluded(blocked(wait))
    assert (swaps.fault, swaps.nodes) == (FaultClass.HANG_MISMATCH, (JOB.node_of(2),))
    hints = [e for e in assess_job(blocked(wait), ()) if e.fault is FaultClass.STORAGE_CHECKPOINT]
    assert {e.weight for e in hints} == {Weight.HINTS}
    saves = {"phase": "checkpoint", "phase_longest_s": 8.0, "process_state": "D"}
    verdict = concluded(stalled({2: {**saves, "kernel_wait": wait}}))
    assert (verdict.fault, verdict.nodes) == (FaultClass.STORAGE_CHECKPOINT, ())
    assert [place.node for place in verdict.places] == [JOB.node_of(2)]


def test_the_one_stage_that_reads_is_not_to_blame_for_its_file_server() -> None:
    """Three stages receive, the first waits for the server: its node was named at 0.94."""
    job = replace(JOB, nodes=("n1", "n2", "n3", "n4"), ranks_per_node=1, axes=(("pp", 4),))
    views = tuple(RankView(r, f"n{r + 1}", alive=True, step=40, phase="forward") for r in range(4))
    reads = replace(views[0], process_state="D", kernel_wait="rpc_wait_bit_killable")
    stacks = [RankStack(0, OWN, "D"), *(RankStack(r, RECEIVES) for r in range(1, 4))]

    def found(first: RankView, *others: RankView) -> set[Weight]:
        status = JobStatus(job, (first, *others), 40, 70.0, stalled=True, silent=())
        return {item.weight for item in assess_hang(status, stacks)[1][0]}

    assert found(reads, *views[1:]) == {Weight.HINTS}
    assert found(replace(reads, kernel_wait="nv_wait"), *views[1:]) == {Weight.CONVICTS}
    in_sync = [replace(view, phase="all_reduce") for view in views[1:]]
    assert found(replace(reads, kernel_wait="nv_wait"), *in_sync) == {Weight.CONVICTS}
