"""What a scheduler says of ranks that do not run, as status and as evidence."""

from dataclasses import replace

import pytest

from brctl.evidence.job.assess import assess_job, job_gaps
from brctl.evidence.job.scheduler import REASONS, ReasonRow
from brctl.evidence.job.status import read_job, with_scheduler
from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.model.command import Outcome
from brctl.model.evidence import Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_run_state import JobRunState, SchedulerReason
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus

JOB = example_job()
INDEX = LineIndex(SHIPPED)
ALL = tuple(range(JOB.world_size))


def read(progress_age_s: float | None) -> JobStatus:
    """A job whose nodes know nothing of its processes; only its files were read."""
    rows = [] if progress_age_s is None else [progress_age_s]
    reports = [
        NodeReport(
            node,
            Outcome.ANSWERED,
            (
                CheckResult(
                    "job.ranks",
                    ProbeStatus.MEASURED,
                    tuple(Measurement("job.rank.progress_age_s", f"rank:{i}", a) for a in rows),
                ),
            ),
        )
        for i, node in enumerate(JOB.nodes)
    ]
    return read_job(JOB, reports)


def known(gone: tuple[int, ...] = (), **more: object) -> JobRunState:
    alive = tuple(rank for rank in ALL if rank not in gone)
    return replace(JobRunState(alive, gone, frozenset({"R-1"}), {}, {}), **more)  # type: ignore[arg-type]  # as named


@pytest.mark.parametrize(("age_s", "stalled"), [(1.0, False), (900.0, True), (None, None)])
def test_a_job_whose_pods_run_is_judged_by_its_progress(
    age_s: float | None, stalled: bool | None
) -> None:
    """The scheduler says who lives, the ranks' files how far they came."""
    assert read(age_s).stalled is None
    found = with_scheduler(read(age_s), known())
    assert found.stalled is stalled
    assert all(view.alive for view in found.ranks)


def test_the_exit_code_of_a_pod_is_that_of_its_rank() -> None:
    """A rank that ended badly stalls the others, whatever their files say."""
    found = with_scheduler(read(1.0), known((2,), exits={2: 7}))
    assert found.stalled is True
    assert (found.ranks[2].alive, found.ranks[2].exit_status) == (False, 7)


def test_what_a_node_measured_stands() -> None:
    """The kernel knows of a process better than anybody."""
    status = read(1.0)
    ranks = (replace(status.ranks[0], alive=True, process_state="T"), *status.ranks[1:])
    found = with_scheduler(replace(status, ranks=ranks), known((0,)))
    assert found.ranks[0].alive is True
    assert with_scheduler(status, None) is status


@pytest.mark.parametrize(
    ("reason", "message", "fault"),
    [
        ("OOMKilled", "", FaultClass.CPU_OOM),
        ("Evicted", "The node was low on resource: ephemeral-storage.", FaultClass.DISK_FULL),
        ("Evicted", "The node was low on resource: memory.", FaultClass.CPU_OOM),
        ("PreemptionByScheduler", "", FaultClass.PREEMPTION_SIGTERM),
        ("DeletionByTaintManager", "", FaultClass.NODE_FAILURE),
        ("ErrImagePull", "no such image", FaultClass.ENVIRONMENT_MISMATCH),
        ("KnownToNobody", "", None),
    ],
)
def test_a_reason_is_evidence_of_its_class(
    reason: str, message: str, fault: FaultClass | None
) -> None:
    """One row of one table; an unknown word is context and no guess."""
    why = SchedulerReason("n3", (2,), reason, message, "pod p")
    status = with_scheduler(read(900.0), known((2,), exits={2: 137}, reasons=(why,)))
    found = [e for e in assess_job(status, ()) if e.source == "scheduler"]
    assert [(e.subject.node, e.subject.device, e.fault) for e in found] == [("n3", "rank:2", fault)]
    assert reason in found[0].text


def test_beside_steps_that_go_on_a_reason_accuses_nobody() -> None:
    """A node under memory pressure whose job advances is no verdict."""
    why = SchedulerReason("n3", (), "NodeMemoryPressure", "", "node n3")
    status = with_scheduler(read(1.0), known(reasons=(why,)))
    found = [e for e in assess_job(status, ()) if e.source == "scheduler"]
    assert [(e.weight, e.fault) for e in found] == [(Weight.CONTEXT, None)]


def test_a_rank_of_which_nobody_knows_is_a_gap_that_says_why() -> None:
    """Pending: neither alive nor gone."""
    why = SchedulerReason("", (2,), "Unschedulable", "0/4 nodes are available", "pod p")
    state = replace(known((2,), reasons=(why,)), gone=())
    status = with_scheduler(read(1.0), state)
    gaps = [gap for gap in job_gaps(status, ()) if gap.subject.device == "rank:2"]
    assert gaps[0].why == (
        "whether it runs was not read: pod p (rank 2): Unschedulable: 0/4 nodes are available"
    )


def _of_a_log(row: ReasonRow) -> set[FaultClass | None]:
    """What the log rules make of the same word."""
    reader = LineReader("events.log", INDEX)
    reader.read(1, f"Warning  {row.reason}  pod/trainer-0  {row.word}".encode())
    return {event.signature.fault for event in reader.events()}


@pytest.mark.parametrize(
    "row", [row for row in REASONS if not row.reason.startswith("Node")], ids=lambda r: r.reason
)
def test_a_log_line_with_the_same_word_means_the_same(row: ReasonRow) -> None:
    """Where the log rules know the word at all; two tables must not contradict each other."""
    assert _of_a_log(row) <= {row.fault, FaultClass.UNKNOWN, None}
