"""A signal that ended a rank: who was told to stop, who crashed, and who only followed."""

import signal
from collections.abc import Mapping
from dataclasses import replace

import pytest

from brctl.evidence.job.assess import assess_job
from brctl.evidence.job.ends import first_ends
from brctl.evidence.job.signals import name_of, signal_of, told_to_stop
from brctl.model.evidence import Evidence, Subject
from brctl.model.evidence_kinds import CRASHED_FIRST, KILLED_FIRST, TOLD_FIRST
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.verdict import Confidence, Place
from brctl.verdict.decide import decide
from tests.verdict.test_belief import seen
from tests.verdict.test_places import JOB as CONTEXT

JOB = example_job()
LOST = (1, "all_reduce")
"""Status and phase of a rank that lost its peers."""


def ended(odd: Mapping[int, tuple[int | None, str]]) -> JobStatus:
    """Eight ranks on as many nodes, all of which lost a peer but for the odd ones."""
    views = tuple(
        RankView(
            rank, JOB.node_of(rank), alive=False, exit_status=status, step=40, phase=phase,
            progress_age_s=70.0,
        )
        for rank in range(8)
        for status, phase in [odd.get(rank, LOST)]
    )  # fmt: skip
    return JobStatus(JOB, views, 40, 70.0, stalled=True, silent=())


def everywhere(status: int, phase: str = "all_reduce") -> dict[int, tuple[int | None, str]]:
    return dict.fromkeys(range(8), (status, phase))


@pytest.mark.parametrize(
    ("status", "number"),
    [(-15, 15), (143, 15), (130, 2), (139, 11), (0, 0), (3, 0), (128, 0), (255, 0), (None, 0)],
)
def test_a_status_names_its_signal_however_it_was_passed_on(
    status: int | None, number: int
) -> None:
    assert signal_of(status) == number


def test_a_signal_without_a_name_has_its_number() -> None:
    assert (name_of(-11), name_of(-60)) == ("SIGSEGV", "signal 60")


@pytest.mark.parametrize("phase", ["optimizer", "all_reduce"])
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (-signal.SIGTERM, TOLD_FIRST), (143, TOLD_FIRST), (-signal.SIGINT, TOLD_FIRST),
        (-signal.SIGHUP, TOLD_FIRST), (-signal.SIGSEGV, CRASHED_FIRST), (134, CRASHED_FIRST),
        (-signal.SIGBUS, CRASHED_FIRST), (-signal.SIGKILL, KILLED_FIRST),
        (137, KILLED_FIRST),
    ],
)  # fmt: skip
def test_it_began_where_one_rank_got_a_signal_and_all_others_lost_it(
    status: int, kind: str, phase: str
) -> None:
    (item,) = first_ends(ended({2: (status, phase)}))
    assert (item.kind, item.subject) == (kind, Subject("n3", "rank:2"))


@pytest.mark.parametrize("status", [-signal.SIGTERM, -signal.SIGABRT])
def test_whom_launchers_stop_beside_a_rank_that_failed_by_itself_began_nothing(
    status: int,
) -> None:
    """And none whom a watchdog aborts."""
    stopped = ended({**everywhere(status), 5: (1, "forward")})
    one = ended({2: (status, "all_reduce"), 5: (1, "forward")})
    for found in (stopped, one):
        assert not list(first_ends(found))
        assert not list(told_to_stop(found))


def test_a_rank_that_its_watchdog_aborts_while_others_live_began_nothing() -> None:
    """Of two nodes, or as the first of many whose time is up; a crash is one all the same."""
    first = ended({1: (-6, "all_reduce")})
    lives = replace(first.ranks[0], alive=True, exit_status=None, phase="forward")
    assert not list(first_ends(replace(first, ranks=(lives, *first.ranks[1:]))))
    crash = ended({1: (-11, "all_reduce")})
    (item,) = first_ends(replace(crash, ranks=(lives, *crash.ranks[1:])))
    assert item.kind == CRASHED_FIRST


def test_a_crash_is_where_it_began_when_a_launcher_stopped_the_rest() -> None:
    (item,) = first_ends(ended({**everywhere(-15), 6: (-11, "forward")}))
    assert (item.kind, item.subject.node) == (CRASHED_FIRST, "n7")
    assert not list(told_to_stop(ended({**everywhere(-15), 6: (-11, "forward")})))


@pytest.mark.parametrize(
    "odd",
    [
        everywhere(-15), everywhere(143, "forward"), everywhere(-2),
        {**everywhere(-15), 7: (-10, "load")},
    ],
)  # fmt: skip
def test_a_job_whose_ranks_were_all_told_was_told_to_stop(
    odd: Mapping[int, tuple[int | None, str]],
) -> None:
    """It was unknown with a check of every machine: nobody is named, and a restart is enough."""
    status = ended(odd)
    (verdict,) = decide(assess_job(status, ()), (), CONTEXT)
    assert (verdict.fault, verdict.nodes, verdict.places) == (
        FaultClass.PREEMPTION_SIGTERM, (), (),
    )  # fmt: skip
    assert 0.6 <= verdict.probability < 0.9


@pytest.mark.parametrize("lost", [{0: LOST, 4: LOST}, {3: LOST}])
def test_a_rank_that_ended_while_it_waited_may_have_failed_there(
    lost: Mapping[int, tuple[int | None, str]],
) -> None:
    """CUDA's errors surface in collectives: it was preemption at 0.85, none failed by itself."""
    status = ended({**everywhere(-15), **lost})
    (item,) = told_to_stop(status)
    assert f"{len(lost)} ended otherwise in all_reduce" in item.text
    (verdict,) = decide(assess_job(status, ()), (), CONTEXT)
    assert (verdict.nodes, verdict.confidence) == ((), Confidence.LOW)


@pytest.mark.parametrize("killed", [-9, 137])
def test_where_one_was_killed_whoever_was_told_beside_it_began_nothing(killed: int) -> None:
    """A memory limit's 137 was no kill: a lead at the node that was only told to stop."""
    (item,) = first_ends(ended({0: (143, "all_reduce"), 1: (killed, "forward")}))
    assert (item.kind, item.subject.node) == (KILLED_FIRST, "n2")


@pytest.mark.parametrize(
    "odd", [(-9, "forward"), (137, "forward"), (None, "forward"), (0, "forward"), (3, "save")]
)
def test_a_rank_that_is_gone_otherwise_may_be_why_the_rest_was_told(
    odd: tuple[int | None, str],
) -> None:
    assert not list(told_to_stop(ended({**everywhere(-15), 3: odd})))


def test_the_one_rank_that_was_told_is_a_place_of_a_job_that_was_told_to_stop() -> None:
    """Its log said KeyboardInterrupt, and the verdict named no place."""
    (first,) = first_ends(ended({2: (-2, "optimizer")}))
    (verdict,) = decide([first, _said("n3", 2)], (), CONTEXT)
    assert verdict.fault is FaultClass.PREEMPTION_SIGTERM
    assert verdict.places == (Place("n3", (2,)),)


def test_who_alone_says_that_all_were_told_is_no_place() -> None:
    """One rank writes the log of all, and every rank had the signal."""
    told = [*told_to_stop(ended(everywhere(-15))), _said("n1", 0)]
    (verdict,) = decide(told, (), CONTEXT)
    assert (verdict.fault, verdict.places) == (FaultClass.PREEMPTION_SIGTERM, ())


def _said(node: str, rank: int) -> Evidence:
    said = seen(node, FaultClass.PREEMPTION_SIGTERM, source=f"rank-{rank:05d}.log")
    return replace(said, subject=Subject(node, f"rank:{rank}"), kind="log.signal.term")
