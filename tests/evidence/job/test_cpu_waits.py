"""A rank that waits for a CPU while its peers do not is the one that all wait for."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from brctl.evidence.job.cpu_waits import cpu_waits
from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Role, Weight
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus, RankView, StepHistory, StepWindow
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus

JOB = replace(example_job(), nodes=("n1", "n2", "n3", "n4"), ranks_per_node=1, axes=())
PAST = tuple(StepWindow(25 * n, 25, step_s=0.1) for n in range(5))
SLOWER = StepHistory(PAST, StepWindow(125, 25, step_s=0.4))
STEADY = StepHistory(PAST, StepWindow(125, 25, step_s=0.1))


def judge(
    waits: Mapping[int, float],
    cpus: Mapping[int, int],
    history: StepHistory = SLOWER,
    *,
    busy: bool = False,
    stalled: bool = False,
    told_by: str = "",
    wait_s: float | None = 0.01,
    mains: Mapping[int, float] = MappingProxyType({}),
) -> tuple[Evidence, ...]:
    ranks = tuple(
        RankView(n, JOB.nodes[n], alive=True, step=150, wait_s=wait_s if n == 2 else 0.3)
        for n in range(4)
    )
    status = JobStatus(JOB, ranks, 150, 0.1, stalled=stalled, silent=(), history=history)
    reports = [
        NodeReport(
            told_by or JOB.node_of(rank), Outcome.ANSWERED,
            (CheckResult("job.cpu", ProbeStatus.MEASURED, (
                Measurement("job.cpu.waits_pct", f"rank:{rank}", pct),
                Measurement("job.cpu.allowed", f"rank:{rank}", cpus.get(rank, 8)),
                *(Measurement("job.cpu.main_waits_pct", f"rank:{n}", share)
                  for n, share in mains.items() if n == rank),
            )),),
        )
        for rank, pct in waits.items()
    ]  # fmt: skip
    return tuple(cpu_waits(status, reports, busy))


USUAL = {0: 3.0, 1: 5.0, 3: 2.0}


def test_the_one_rank_without_a_cpu_is_convicted_where_steps_became_longer() -> None:
    (found,) = judge({**USUAL, 2: 71.0}, {})
    assert (found.subject.node, found.weight) == ("n3", Weight.CONVICTS)
    assert "no CPU for 71 %" in found.text


def test_a_job_that_never_was_faster_gets_a_hint() -> None:
    (found,) = judge({**USUAL, 2: 71.0}, {}, STEADY)
    assert (found.weight, found.strength) == (Weight.HINTS, None)


@pytest.mark.parametrize("wait_s", [0.3, 0.2, None])
def test_a_rank_that_nobody_is_seen_to_wait_for_gets_a_hint(wait_s: float | None) -> None:
    """The thread without a CPU may be one that no step needs."""
    (found,) = judge({**USUAL, 2: 71.0}, {}, wait_s=wait_s)
    assert (found.weight, found.strength) == (Weight.HINTS, None)


def test_a_rank_whose_main_thread_has_no_cpu_is_what_steps_wait_for() -> None:
    """Every step needs it, whatever the rank's collectives make of its waits."""
    starves = {0: 1.0, 1: 2.0, 2: 64.0, 3: 1.0}
    (found,) = judge({**USUAL, 2: 71.0}, {}, wait_s=0.3, mains=starves)
    assert found.weight is Weight.CONVICTS
    assert "its main thread for 64 %" in found.text
    for mains in ({**starves, 2: 3.0}, {2: 64.0}, dict.fromkeys(range(4), 64.0)):
        (found,) = judge({**USUAL, 2: 71.0}, {}, wait_s=0.3, mains=mains)
        assert found.weight is Weight.HINTS


@pytest.mark.parametrize(("wait_s", "busy"), [(5.0, False), (5.0, True), (0.3, True), (None, True)])
def test_one_look_at_a_main_thread_convicts_nobody_whom_nothing_else_shows_to_be_waited_for(
    wait_s: float | None, busy: bool
) -> None:
    """Busy hosts starve whoever computes just then; and who waits 5 s is not waited for."""
    starves = {0: 1.0, 1: 2.0, 2: 64.0, 3: 1.0}
    (found,) = judge({**USUAL, 2: 71.0}, {}, busy=busy, wait_s=wait_s, mains=starves)
    assert (found.weight, found.strength) == (Weight.HINTS, None)
    (waited_for,) = judge({**USUAL, 2: 71.0}, {}, busy=True, mains=starves)
    assert waited_for.weight is Weight.CONVICTS


def test_a_rank_bound_to_fewer_cpus_is_convicted_whatever_it_waits() -> None:
    """Its collectives wait for a CPU as well, so its waits look like everybody's."""
    (found,) = judge({**USUAL, 2: 71.0}, {2: 1}, wait_s=0.3)
    assert found.weight is Weight.CONVICTS


def test_fewer_cpus_than_the_others_are_told_and_surer() -> None:
    (bound,) = judge({**USUAL, 2: 71.0}, {2: 1})
    (free,) = judge({**USUAL, 2: 71.0}, {})
    assert "CPUs it may use: 1, the usual rank: 8" in bound.text
    assert bound.strength is not None
    assert free.strength is not None
    assert bound.strength > free.strength


def test_on_busy_hosts_a_rank_without_a_cpu_is_less_sure_to_be_the_reason() -> None:
    """There whoever computes waits for a CPU."""
    (busy,) = judge({**USUAL, 2: 71.0}, {}, busy=True)
    (calm,) = judge({**USUAL, 2: 71.0}, {})
    assert busy.strength is not None
    assert calm.strength is not None
    assert busy.strength < calm.strength


def test_on_busy_hosts_one_rank_that_waits_longest_is_chance_while_steps_do_not_suffer() -> None:
    """Bound to fewer CPUs, or waited for, it is a hint there as well."""
    (found,) = judge({**USUAL, 2: 55.0}, {}, STEADY, busy=True, wait_s=0.3)
    assert found.weight is Weight.CONTEXT
    (unknown,) = judge({**USUAL, 2: 95.0}, {}, StepHistory(), busy=True, wait_s=None)
    assert unknown.weight is Weight.HINTS  # how steps were before nobody knows
    (bound,) = judge({**USUAL, 2: 55.0}, {2: 1}, STEADY, busy=True, wait_s=0.3)
    (waited_for,) = judge({**USUAL, 2: 55.0}, {}, STEADY, busy=True)
    assert (bound.weight, waited_for.weight) == (Weight.HINTS, Weight.HINTS)


STARVED = {0: 56.0, 1: 53.0, 2: 60.0, 3: 53.0}
"""As a rank pinned to one of two cores showed beside its peers, all of them at load 14 a core."""


@pytest.mark.parametrize("history", [STEADY, SLOWER])
@pytest.mark.parametrize("cpus", [1, 4])
def test_where_all_wait_the_rank_with_half_of_the_cpus_is_a_hint(
    cpus: int, history: StepHistory
) -> None:
    """It was no-fault at 0.95: by its affinity, or by a cpuset that leaves it half of them."""
    (found,) = judge(STARVED, {2: cpus}, history, busy=True, wait_s=0.3)
    assert (found.subject.node, found.weight, found.role) == ("n3", Weight.HINTS, Role.ROOT)
    assert "CPUs it may use" in found.text


def test_a_rank_with_fewer_cpus_that_has_them_when_it_wants_is_no_hint() -> None:
    assert judge({**USUAL, 2: 12.0}, {2: 1}) == ()
    assert judge(STARVED, {2: 5}, busy=True) == ()


def test_ranks_that_all_wait_accuse_nobody() -> None:
    assert judge({0: 60.0, 1: 70.0, 2: 80.0, 3: 65.0}, {}) == ()


def test_a_job_that_stands_still_is_not_judged_by_its_waits() -> None:
    assert judge({**USUAL, 2: 71.0}, {}, stalled=True) == ()


def test_a_node_tells_of_its_own_ranks_only() -> None:
    assert judge({**USUAL, 2: 71.0}, {}, told_by="n1") == ()
