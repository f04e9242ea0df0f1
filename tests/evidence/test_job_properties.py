"""What was not read of a job never makes it look sound, and the order of answers says nothing."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.evidence.job.assess import assess_job, job_gaps
from brctl.evidence.job.status import read_job
from brctl.model.command import Outcome
from brctl.model.evidence import Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import example_job
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value
from brctl.model.verdict import Verdict
from brctl.verdict.decide import DecisionContext, decide

JOB = example_job()
NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
SOUND: dict[str, Value] = {"alive": True, "process_state": "S", "step": 40, "phase": "forward"}
SOUND |= {"phase_age_s": 0.1, "progress_age_s": 0.1, "loss_finite": True, "wait_s": 0.2}
WAITS: dict[str, Value] = SOUND | {"phase": "all_reduce", "progress_age_s": 90.0}
Row = tuple[int, str]
ROWS = [(rank, name) for rank in range(JOB.world_size) for name in SOUND]


def hanging(rank: int) -> dict[str, Value]:
    return WAITS | ({"phase": "backward"} if rank == 5 else {})


def training(rank: int) -> dict[str, Value]:
    return SOUND


def reports(values: Callable[[int], dict[str, Value]], removed: set[Row]) -> list[NodeReport]:
    """One report a node, without the removed readings and without a word about them."""
    return [
        NodeReport(
            JOB.node_of(rank),
            Outcome.ANSWERED,
            (
                CheckResult(
                    "job.ranks",
                    ProbeStatus.MEASURED,
                    tuple(
                        Measurement(f"job.rank.{name}", f"rank:{rank}", value)
                        for name, value in values(rank).items()
                        if (rank, name) not in removed
                    ),
                ),
            ),
        )
        for rank in range(JOB.world_size)
    ]


def verdict(answers: list[NodeReport]) -> Verdict:
    status = read_job(JOB, answers)
    context = DecisionContext(NOW, JOB.name, status.step, status.stalled)
    return decide(assess_job(status, answers), job_gaps(status, ()), context)[0]


@given(st.sets(st.sampled_from(ROWS)), st.randoms())
def test_the_order_of_answers_never_matters(removed: set[Row], rng: Random) -> None:
    answers = reports(hanging, removed)
    shuffled = list(answers)
    rng.shuffle(shuffled)
    assert verdict(answers) == verdict(shuffled)


@given(st.sets(st.sampled_from(ROWS)))
def test_a_hanging_job_is_never_found_sound(removed: set[Row]) -> None:
    """Whichever readings are lost: the verdict is the hang of its rank, or it is unknown."""
    found = verdict(reports(hanging, removed))
    assert found.fault in (FaultClass.HANG_MISMATCH, FaultClass.UNKNOWN)
    assert set(found.nodes) <= {"n6"}


@given(st.sets(st.sampled_from([row for row in ROWS if row[1] in ("alive", "progress_age_s")])))
def test_what_was_not_read_of_a_rank_is_said(removed: set[Row]) -> None:
    """Every rank that lost a vital reading is named among what was not looked at."""
    answers = reports(training, removed)
    gaps = job_gaps(read_job(JOB, answers), ())
    assert {gap.subject.device for gap in gaps} == {f"rank:{rank}" for rank, _ in removed}


@given(st.sets(st.sampled_from(JOB.nodes)), st.sets(st.sampled_from(ROWS)))
def test_silence_convicts_nobody_of_a_job_that_trains(silent: set[str], removed: set[Row]) -> None:
    """Lost answers and lost readings are no proof against a node while any rank is seen to step."""
    removed -= {(0, "alive"), (0, "progress_age_s"), (0, "phase")}
    answers = [
        replace(report, outcome=Outcome.CONNECT_TIMED_OUT, results=())
        if report.node in silent - {JOB.node_of(0)}
        else report
        for report in reports(training, removed)
    ]
    found = assess_job(read_job(JOB, answers), answers)
    assert all(item.weight is not Weight.CONVICTS for item in found)


@pytest.mark.parametrize("values", [hanging, training])
def test_with_every_reading_the_two_jobs_are_told_apart(
    values: Callable[[int], dict[str, Value]],
) -> None:
    """The properties above are not true for want of a verdict."""
    found = verdict(reports(values, set()))
    expected = (
        (FaultClass.HANG_MISMATCH, ("n6",)) if values is hanging else (FaultClass.UNKNOWN, ())
    )
    assert (found.fault, found.nodes) == expected
