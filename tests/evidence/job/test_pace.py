"""What a job takes for a step says when it stands still, and when nobody can know yet."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from brctl.engine.job.conclude import assess_dumps, may_be_restarted
from brctl.evidence.flight.dump import Dump, Operation
from brctl.evidence.job.absent import absent_ranks
from brctl.evidence.job.kernel_waits import held_back
from brctl.evidence.job.late.stragglers import stragglers
from brctl.evidence.job.long_phases import at_work
from brctl.evidence.job.pace import (
    LONGEST_STEP_S,
    STEPS_STILL,
    late_step_s,
    patience_s,
    until_told_s,
)
from brctl.evidence.job.status import read_job
from brctl.model.command import Outcome
from brctl.model.evidence import Weight
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus, RankView, StepHistory, StepWindow
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value

JOB = example_job()
NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
ELSEWHERE = {"phase": "backward", "phase_age_s": 90.0}


def job(
    rank: Mapping[str, object], odd: Mapping[int, Mapping[str, object]] | None = None
) -> JobStatus:
    """Eight ranks alike but for the odd ones, as they were read."""
    return read_job(JOB, [_report(n, {**rank, **(odd or {}).get(n, {})}) for n in range(8)])


def _report(rank: int, values: Mapping[str, object]) -> NodeReport:
    rows = tuple(
        Measurement(f"job.rank.{name}", f"rank:{rank}", _value(value))
        for name, value in values.items()
    )
    result = CheckResult("job.ranks", ProbeStatus.MEASURED, rows)
    return NodeReport(JOB.node_of(rank), Outcome.ANSWERED, (result,))


def _value(value: object) -> Value:
    assert isinstance(value, (int, float, str, bool))
    return value


WAITS: Mapping[str, object] = {
    "alive": True, "process_state": "S", "step": 40, "phase": "all_reduce", "phase_age_s": 90.0,
    "progress_age_s": 90.0,
}  # fmt: skip


@pytest.mark.parametrize(("step_s", "stands"), [(0.4, True), (45.0, True), (80.0, False)])
def test_a_job_stands_still_when_it_takes_longer_than_its_own_step(
    step_s: float, stands: bool
) -> None:
    status = job({**WAITS, "step_s": step_s, "recent_steps": 9, "recent_step_s": step_s})
    assert status.stalled is stands


def test_no_claim_of_a_rank_keeps_a_stall_from_being_told_for_ever() -> None:
    status = job({**WAITS, "step_s": 1e12})
    assert patience_s(status) == STEPS_STILL * LONGEST_STEP_S


@pytest.mark.parametrize(
    ("age_s", "step_s", "late"),
    [(0.3, 0.1, False), (1.9, 0.1, False), (8.0, 0.1, True), (8.0, 4.0, False), (90.0, 0.1, False)],
)
def test_a_step_is_late_long_before_the_job_stands_still(
    age_s: float, step_s: float, late: bool
) -> None:
    """Five of its usual times and two seconds; once it stands still it is no longer called late."""
    status = job({**WAITS, "progress_age_s": age_s, "phase_age_s": age_s, "step_s": step_s})
    assert late_step_s(status) == (step_s if late else None)
    assert until_told_s(status) == max(0.0, patience_s(status) - age_s)


def test_nothing_is_late_where_nobody_knows_how_long_a_step_takes() -> None:
    assert late_step_s(job({**WAITS, "progress_age_s": 20.0})) is None


def test_the_first_step_has_no_usual_length() -> None:
    """Compiling and tuning take minutes, and how many nobody knows before a step has ended."""
    first = job({**WAITS, "step": 1}, {3: ELSEWHERE})
    later = job({**WAITS, "step_s": 0.4}, {3: ELSEWHERE})
    for_ever = job({**WAITS, "step": 1}, {3: {"phase": "backward", "phase_age_s": 900.0}})
    assert set(at_work(first)) == {3}
    assert not at_work(later)
    assert not at_work(for_ever)
    assert {e.weight for e in absent_ranks(later)} == {Weight.CONVICTS}


def test_a_rank_that_stands_where_the_others_wait_is_not_elsewhere() -> None:
    """Its progress file was a moment late; a stopped one stands nowhere."""
    same = ("hooks.py:throttle", "train.py:main")
    status = job(WAITS, {3: ELSEWHERE, 5: {**ELSEWHERE, "process_state": "T"}})
    status = replace(status, ranks=tuple(replace(view, stack=same) for view in status.ranks))
    assert [e.subject.device for e in absent_ranks(status)] == ["rank:5"]


@pytest.mark.parametrize(
    ("wait", "held"),
    [
        ("__refrigerator", True), ("mem_cgroup_handle_over_high", True),
        ("balance_dirty_pages", True),
        ("request_wait_answer", True), ("nvidia_poll", False), ("", False),
    ],
)  # fmt: skip
def test_a_kernel_that_waits_for_a_limit_or_a_server_speaks_of_no_machine(
    wait: str, held: bool
) -> None:
    status = job(WAITS, {2: {"process_state": "D", "kernel_wait": wait}})
    assert [e.subject.node for e in held_back(status)] == (["n3"] if held else [])


def _dump(rank: int, age_s: float) -> Dump:
    created = NOW.timestamp() - age_s
    waits = Operation(7, "0", 7, "nccl:all_reduce", None, "", pending=True, created_s=created)
    entered = 6 if rank == 5 else 7
    ranks = {"0": tuple(range(8))}
    return Dump(rank, () if rank == 5 else (waits,), ranks, {}, {"0": entered}, {"0": 6})


@pytest.mark.parametrize(("age_s", "speaks"), [(91.0, True), (140.0, True), (3700.0, False)])
def test_dumps_from_before_the_job_came_to_stand_say_nothing_of_it(
    age_s: float, speaks: bool
) -> None:
    status = job(WAITS, {5: ELSEWHERE})
    evidence, gaps = assess_dumps(status, [_dump(rank, age_s) for rank in range(8)], (), NOW)
    assert [e.subject.node for e in evidence] == (["n6"] if speaks else [])
    assert bool(gaps) is not speaks


def test_ranks_that_ended_beside_ranks_that_go_on_may_be_two_starts() -> None:
    ended = {"alive": False, "exit_status": -15}
    assert may_be_restarted(job({**WAITS, "progress_age_s": 1.0}, {0: ended, 1: ended}))
    assert not may_be_restarted(job(WAITS, {0: ended}))
    assert not may_be_restarted(job({**WAITS, "progress_age_s": 1.0}))


def _advancing(*waits_s: float) -> JobStatus:
    views = tuple(
        RankView(
            rank, JOB.node_of(rank), alive=True, step=90, phase="forward", progress_age_s=0.1,
            wait_s=wait_s, step_s=1.0, recent_steps=12,
        )
        for rank, wait_s in enumerate(waits_s)
    )  # fmt: skip
    return JobStatus(JOB, views, 90, 0.1, stalled=False, silent=())


def test_the_least_of_waits_of_every_length_is_no_straggler() -> None:
    """Ranks that pause in turn wait for each other; one straggler stands apart from all others."""
    in_turn = _advancing(0.05, 0.12, 0.2, 0.27, 0.34, 0.41, 0.48, 0.55)
    apart = _advancing(0.05, 0.42, 0.44, 0.43, 0.45, 0.41, 0.48, 0.46)
    assert not list(stragglers(in_turn))
    assert [e.subject.node for e in stragglers(apart)] == ["n1"]


def test_many_that_the_others_always_waited_for_do_other_work_than_they() -> None:
    """Learners that wait for their actors for half of every step were told of as slow loaders."""
    window = StepWindow(0, 40, 1.0)
    roles = _advancing(0.02, 0.02, 0.02, 0.82, 0.84, 0.83, 0.85, 0.81)
    one = _advancing(0.02, 0.8, 0.82, 0.82, 0.84, 0.83, 0.85, 0.81)
    past = StepHistory(past=(window,) * 5, recent=window, last=window)
    (hint,) = stragglers(replace(roles, history=past))
    assert (hint.subject.node, hint.weight) == ("", Weight.HINTS)
    assert [e.subject.node for e in stragglers(replace(one, history=past))] == ["n1"]
    of_one_node = tuple(replace(v, node=f"n{1 + (v.rank > 2)}") for v in roles.ranks)
    late = stragglers(replace(roles, history=past, ranks=of_one_node))
    assert {e.subject.node for e in late} == {"n1"}
    assert len(list(stragglers(roles))) == 3


def test_hosts_with_too_much_to_do_make_no_straggler_of_who_was_late_a_while() -> None:
    late = _advancing(0.05, 0.42, 0.44, 0.43, 0.45, 0.41, 0.48, 0.46)
    (item,) = stragglers(late, busy=True)
    assert (item.subject.node, item.weight) == ("", Weight.HINTS)
    very = _advancing(0.02, 0.82, 0.84, 0.83, 0.85, 0.81, 0.88, 0.86)
    assert {e.weight for e in stragglers(very, busy=True)} == {Weight.CONVICTS}
