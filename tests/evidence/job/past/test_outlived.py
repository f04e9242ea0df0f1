"""A kill among other processes, and a line that stopped nobody, accuse nobody."""

from dataclasses import replace

import pytest

from brctl.evidence.job.past.outlived import not_outlived, of_this_job, outlived, said_in_passing
from brctl.evidence.job.storage import storage
from brctl.evidence.logs.rank_logs import RankLog, assess_log_lines
from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus

JOB = example_job()
KILL = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg={0},task_memcg={0},task=x"


def status(step: int = 40, **more: object) -> JobStatus:
    views = tuple(
        RankView(rank, JOB.node_of(rank), alive=True, step=step, phase="forward")
        for rank in range(8)
    )
    return replace(JobStatus(JOB, views, step, 0.1, stalled=False, silent=()), **more)  # type: ignore[arg-type]  # by name


def against(kind: str, fault: FaultClass, raw: str = "", node: str = "n3") -> Evidence:
    return Evidence(
        kind, Subject(node), Weight.CONVICTS, fault, Role.ROOT, "host.kernel", "so it says", raw,
        strength=0.9,
    )  # fmt: skip


def groups(path: str, node: str = "n3") -> list[NodeReport]:
    rows = (Measurement("job.cgroup.path", "rank:2", path),)
    result = CheckResult("job.cgroup", ProbeStatus.MEASURED, rows)
    return [NodeReport(node, Outcome.ANSWERED, (result,))]


@pytest.mark.parametrize(
    ("rank_group", "killed_in", "is_the_jobs"),
    [
        ("/sys/fs/cgroup/job.slice/step_0", "/job.slice/step_0", True),
        ("/sys/fs/cgroup/job.slice/step_0", "/job.slice/step_0/loader", True),
        ("/sys/fs/cgroup/memory/slurm/job_7/step_0", "/slurm/job_7/step_0", True),
        ("/sys/fs/cgroup/job.slice/step_0", "/system.slice/backup.service", False),
        ("/sys/fs/cgroup/slurm/job_7", "/slurm/job_8", False),
        ("/sys/fs/cgroup/job.slice/step_0", "/", True),
    ],
)
def test_a_kill_counts_when_it_was_in_the_jobs_own_group(
    rank_group: str, killed_in: str, is_the_jobs: bool
) -> None:
    item = against("host.kernel.oom_container", FaultClass.CPU_OOM, KILL.format(killed_in))
    stalled = status(stalled=True)
    (found,) = of_this_job([item], stalled, groups(rank_group))
    assert (found.weight is Weight.CONVICTS) is is_the_jobs


@pytest.mark.parametrize(("step", "waits"), [(None, 0), (40, 8)])
def test_pages_read_before_the_first_step_are_no_wait_of_a_fault(
    step: int | None, waits: int
) -> None:
    """A job that loaded a large checkpoint was told of as one whose storage fails."""
    reading = tuple(
        replace(v, step=step, process_state="D", kernel_wait="folio_wait_bit_common")
        for v in status().ranks
    )
    found = list(storage(replace(status(), ranks=reading, step=step, stalled=True), []))
    assert sum(item.role is Role.ROOT for item in found) == waits


@pytest.mark.parametrize(
    ("group", "killed_in", "is_the_jobs"),
    [
        ("/job/3", "/job/2", True),
        ("/job/3", "/system.slice/backup.service", False),
        ("/system.slice/docker-abc.scope", "/system.slice/backup.service", False),
        ("/docker/mine", "/docker/other", False),
    ],
)
def test_a_killed_rank_whose_group_nobody_reads_any_more_stood_beside_the_others(
    group: str, killed_in: str, is_the_jobs: bool
) -> None:
    """Each rank had a group of its own, and the killed one's was "no group of the job"."""
    item = against("host.kernel.oom_container", FaultClass.CPU_OOM, KILL.format(killed_in))
    ranks = tuple(
        replace(v, alive=v.rank != 2, exit_status=-9 if v.rank == 2 else None)
        for v in status().ranks
    )
    ended = status(stalled=True, ranks=tuple(replace(v, node="n3") for v in ranks))
    (found,) = of_this_job([item], ended, groups(f"/sys/fs/cgroup{group}"))
    assert (found.weight is Weight.CONVICTS) is is_the_jobs


def test_a_kill_beside_ranks_that_all_go_on_was_not_theirs() -> None:
    item = against("host.kernel.oom", FaultClass.CPU_OOM, "Out of memory: Killed process 7 (x)")
    (found,) = of_this_job([item], status(), [])
    assert (found.weight, found.role, found.strength) == (Weight.CONTEXT, Role.CONTEXT, None)
    dead = tuple(replace(v, alive=v.node != "n3") for v in status().ranks)
    (kept,) = of_this_job([item], status(ranks=dead), [])
    assert kept is item


def test_only_kills_are_looked_at() -> None:
    other = against("host.kernel.panic", FaultClass.HOST_KERNEL)
    assert of_this_job([other], status(), []) == (other,)


def test_a_line_that_every_rank_outlived_is_context() -> None:
    """User code printed the words of a CUDA error, and training went on."""
    item = against("log.cuda.launch-failure", FaultClass.GPU_LOST)
    assert said_in_passing([item], status())
    (found,) = outlived([item], status(40), status(43))
    assert found.weight is Weight.CONTEXT


def test_a_line_counts_while_a_rank_has_not_made_a_step_since() -> None:
    """Some seconds lie between an exception and the end of its process."""
    item = against("log.python.traceback", FaultClass.USER_CODE)
    later = status(43)
    stuck = replace(later, ranks=(*later.ranks[:5], replace(later.ranks[5], step=40)))
    assert outlived([item], status(40), stuck) == (item,)
    assert outlived([item], status(40), replace(later, ranks=())) == (item,)


RAISED = """Traceback (most recent call last):
  File "train.py", line 9, in step
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.83 GiB.
"""


@pytest.mark.parametrize(
    "then", [{}, {"alive": False, "exit_status": 1}, {"alive": False, "process_state": "Z"}]
)
def test_a_rank_that_raised_and_made_no_step_since_is_a_gap(then: dict[str, object]) -> None:
    """It was no-fault at 0.6 while its process was on its way out: look again."""
    views = status(40).ranks
    ending = (*views[:2], replace(views[2], last_words=RAISED), *views[3:])
    later = (*views[:2], replace(views[2], **then), *views[3:])  # type: ignore[arg-type]  # by name
    (gap,) = not_outlived(status(ranks=ending), status(ranks=later))
    assert (gap.subject, "raised an exception" in gap.why) == (Subject("n3", "rank:2"), True)
    assert not list(not_outlived(status(ranks=ending), status(41)))


@pytest.mark.parametrize(
    "last",
    [
        "ray.train.base_trainer.TrainingFailedError: the run failed",
        "RuntimeError: some process died",
    ],
)
def test_a_rank_that_passed_on_anothers_exception_is_looked_at_again(last: str) -> None:
    """It accuses nobody, so that the second look was left out: no-fault at 0.95 of a dying job."""
    words = RAISED.replace(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.83 GiB.", last
    )
    views = status().ranks
    ending = status(ranks=(*views[:2], replace(views[2], last_words=words), *views[3:]))
    logs = [RankLog(v.rank, v.node, v.last_words, alive=True) for v in ending.ranks]
    against_some = {Weight.HINTS, Weight.CONVICTS}
    evidence = assess_log_lines(logs, advancing=True)
    assert not against_some & {item.weight for item in evidence}
    assert said_in_passing(evidence, ending)
    assert not said_in_passing(evidence, replace(ending, stalled=True))
    assert not said_in_passing((), status())


def test_a_rank_that_prints_later_steps_below_its_traceback_has_caught_it() -> None:
    """A metrics socket broke, and three rows of steps stood below its traceback."""
    views = status().ranks
    for rows, is_ending in (("step 41 loss 2.1\nstep 42 loss 2.0\n", False), ("step 41\n", True)):
        caught = (*views[:2], replace(views[2], last_words=RAISED + rows), *views[3:])
        assert said_in_passing((), status(ranks=caught)) is is_ending


HANDLED = RAISED.replace("torch.OutOfMemoryError", "ImportError: flash_attn, falling back")


def silent_but_one(step: int, **rank_3: object) -> JobStatus:
    """Rank 0 prints the steps; rank 3's short log ends in a traceback that it handled."""
    one, *rest = status(step).ranks
    views = [replace(view, step=None) for view in rest]
    views[2] = replace(views[2], last_words=HANDLED, **rank_3)  # type: ignore[arg-type]  # by name
    return status(step, ranks=(one, *views))


def test_a_rank_without_steps_of_its_own_takes_part_in_its_jobs() -> None:
    """It was unknown at every look of a healthy job."""
    assert not list(not_outlived(silent_but_one(100), silent_but_one(900)))
    assert list(not_outlived(silent_but_one(100), silent_but_one(100)))
    ended = silent_but_one(101, alive=False, exit_status=1)
    assert list(not_outlived(silent_but_one(100), ended))


def test_what_a_rank_printed_before_it_went_on_is_no_gap() -> None:
    views = status(40).ranks
    prints = replace(views[2], last_words=RAISED + "step 40 done\n" * 20)
    assert not list(not_outlived(status(ranks=(*views[:2], prints, *views[3:])), status(40)))


def test_a_rank_that_raised_in_the_all_reduce_is_looked_at_again() -> None:
    """CUDA's errors come up there: the job was no-fault while that rank ended."""
    views = status(40).ranks
    raises = replace(views[3], last_words=RAISED, phase="all_reduce")
    ending = status(ranks=(*views[:3], raises, *views[4:]))
    assert said_in_passing((), ending)
    ended = replace(raises, alive=False, process_state="Z")
    (gap,) = not_outlived(ending, status(40, ranks=(*views[:3], ended, *views[4:])))
    assert gap.subject == Subject("n4", "rank:3")
    assert list(not_outlived(ending, ending)), "it lives, but nobody made a step"
    stepped = status(41, ranks=(*status(41).ranks[:3], raises, *status(41).ranks[4:]))
    assert not list(not_outlived(ending, stepped)), "it lives, and may have handled it long ago"


def test_a_rank_that_made_its_last_step_and_died_did_not_outlive_it() -> None:
    views = status(40).ranks
    ending = status(ranks=(*views[:2], replace(views[2], last_words=RAISED), *views[3:]))
    later = status(41).ranks
    dead = replace(later[2], alive=False, exit_status=1)
    (gap,) = not_outlived(ending, status(41, ranks=(*later[:2], dead, *later[3:])))
    assert gap.subject == Subject("n3", "rank:2")


def test_the_step_that_was_in_flight_is_none_of_a_rank_that_raised() -> None:
    """All others end it with the gradients that the rank had given: it was taken for alive."""
    assert list(not_outlived(silent_but_one(100), silent_but_one(101)))
    assert not list(not_outlived(silent_but_one(100), silent_but_one(102)))


def test_a_loss_that_is_no_number_counts_although_training_goes_on() -> None:
    item = against("log.loss.nan", FaultClass.NUMERIC_NAN)
    assert not said_in_passing([item], status())
    assert outlived([item], status(40), status(43)) == (item,)
    assert not said_in_passing([against("log.x", FaultClass.GPU_LOST)], status(stalled=True))


def disk(node: str, writable: bool, path: str = "/ckpt") -> NodeReport:
    rows = (Measurement("host.disk.writable", f"disk:{path}", writable),)
    return NodeReport(
        node, Outcome.ANSWERED, (CheckResult("host.disk", ProbeStatus.MEASURED, rows),)
    )


@pytest.mark.parametrize("shut", [{"n2"}, {"n5", "n7"}])
def test_a_directory_that_few_nodes_cannot_write_names_them(shut: set[str]) -> None:
    found = list(storage(status(), [disk(node, node not in shut) for node in JOB.nodes]))
    assert {(e.subject.node, e.fault) for e in found} == {
        (node, FaultClass.STORAGE_CHECKPOINT) for node in shut
    }


@pytest.mark.parametrize("shut", [set(), {"n1", "n2", "n3", "n4"}, set(JOB.nodes)])
def test_a_directory_this_login_cannot_write_anywhere_names_nobody(shut: set[str]) -> None:
    assert list(storage(status(), [disk(n, n not in shut) for n in JOB.nodes])) == []


@pytest.mark.parametrize("wait", ["rpc_wait_bit_killable", "fuse_wait_answer", "cl_sync_io_wait"])
def test_a_rank_blocked_by_a_file_system_says_so_while_the_job_stands_still(wait: str) -> None:
    views = list(status().ranks)
    views[4] = replace(views[4], process_state="D", kernel_wait=wait)
    stalled = status(stalled=True, ranks=tuple(views))
    assert [e.subject.node for e in storage(stalled, [])] == ["n5"]
    assert list(storage(status(ranks=tuple(views)), [])) == []


def test_a_rank_blocked_by_its_driver_is_not_waiting_for_files() -> None:
    views = list(status().ranks)
    views[4] = replace(views[4], process_state="D", kernel_wait="nv_wait_on_gpu")
    assert list(storage(status(stalled=True, ranks=tuple(views)), [])) == []
