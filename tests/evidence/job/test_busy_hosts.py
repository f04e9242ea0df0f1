"""Hosts with more to do than they can may slow a job; that they do is not read."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from brctl.engine.job.conclude import JobFindings, conclude
from brctl.evidence.job.assess import assess_job
from brctl.evidence.job.busy_hosts import hosts_may_account
from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.evidence_kinds import BUSY_HOSTS
from brctl.model.fault import FaultClass
from brctl.model.inventory import Inventory, Node
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus, RankView, StepHistory, StepWindow
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus
from brctl.model.verdict import Verdict
from tests.fakes.nodes import NOW, clear, sweep_of

JOB = replace(example_job(), nodes=("n1", "n2", "n3", "n4"), ranks_per_node=1, axes=())
STARVED = {0: 54.0, 1: 61.0, 2: 54.0, 3: 65.0}
"""As they were on two cores at load 29, when a sound job was called unknown."""


def status(
    before_s: float = 0.25, now_s: float = 0.32, *, load_s: float = 0.0, wait_s: float = 0.0
) -> JobStatus:
    """A job whose steps became longer; of that, what loading and collectives take more."""
    past = tuple(StepWindow(25 * n, 25, before_s, wait_s=0.02, load_s=0.01) for n in range(4))
    now = StepWindow(125, 25, now_s, wait_s=0.02 + wait_s, load_s=0.01 + load_s)
    ranks = tuple(
        RankView(n, JOB.nodes[n], alive=True, step=150, phase="forward", progress_age_s=0.1)
        for n in range(4)
    )
    history = StepHistory(past, now)
    return JobStatus(JOB, ranks, 150, 0.1, stalled=False, silent=(), history=history)


def told(
    waits: Mapping[int, float],
    load: float = 14.0,
    throttled_pct: float | None = None,
    mains: Mapping[int, float] = MappingProxyType({}),
) -> list[NodeReport]:
    """Every node of its load, and of how long its rank stands without a CPU."""
    return [
        NodeReport(
            node, Outcome.ANSWERED,
            (
                _measured("host.cpu", "host.cpu.load_per_cpu", "", load),
                _measured("job.cpu", "job.cpu.waits_pct", f"rank:{rank}", waits.get(rank)),
                _measured("job.cpu", "job.cpu.main_waits_pct", f"rank:{rank}", mains.get(rank)),
                _measured("job.cgroup", "job.cgroup.throttled_pct", f"rank:{rank}", throttled_pct),
            ),
        )
        for rank, node in enumerate(JOB.nodes)
    ]  # fmt: skip


def _measured(check: str, name: str, subject: str, value: float | None) -> CheckResult:
    rows = () if value is None else (Measurement(name, subject, value),)
    return CheckResult(check, ProbeStatus.MEASURED, rows)


@pytest.mark.parametrize(
    "job", [status(), status(wait_s=0.05), status(before_s=0.396, now_s=0.687, wait_s=0.05)]
)
def test_what_busy_hosts_may_account_for_is_said_and_stays_a_hint_at_nobody(
    job: JobStatus,
) -> None:
    """The thread that waits longest may be one that no step needs, and a network as slow."""
    slower, hosts = assess_job(job, told(STARVED))
    assert (slower.kind, slower.weight) == ("job.steps.slower", Weight.HINTS)
    assert (hosts.kind, hosts.weight, hosts.role) == (BUSY_HOSTS, Weight.CONTEXT, Role.CONTEXT)
    assert {slower.subject, hosts.subject} == {Subject("")}
    assert "may account for it" in hosts.text


def test_a_job_on_busy_hosts_whose_steps_are_longer_is_not_called_sound() -> None:
    """A loader or proxy that always waits explains no longer step, and nobody is accused."""
    job, reports = status(), told(STARVED)
    sweep = sweep_of(*(replace(clear(report.node), report=report) for report in reports))
    fleet = Inventory({name: Node(name, "x") for name in JOB.nodes})
    (verdict,) = conclude(sweep, JobFindings(job, (assess_job(job, reports), ())), fleet, NOW)
    assert (verdict.fault, verdict.suspects) == (FaultClass.UNKNOWN, ())
    assert verdict.title == "steps are longer, and its hosts have more to do than they can"


def test_a_node_that_was_not_looked_at_may_be_why_steps_are_longer_on_busy_hosts() -> None:
    job, reports = status(), told(STARVED)
    sweep = sweep_of(*(replace(clear(report.node), report=report) for report in reports))
    fleet = Inventory({name: Node(name, "x") for name in JOB.nodes})
    gap = Gap(Subject("n2"), "gpu.clocks", "it did not answer")
    (verdict,) = conclude(sweep, JobFindings(job, (assess_job(job, reports), (gap,))), fleet, NOW)
    assert verdict.title == "the cause is not known"


def concluded(job: JobStatus, *beside: Evidence) -> Verdict:
    reports = told(STARVED)
    sweep = sweep_of(*(replace(clear(report.node), report=report) for report in reports))
    fleet = Inventory({name: Node(name, "x") for name in JOB.nodes})
    findings = JobFindings(job, ((*assess_job(job, reports), *beside), ()))
    return conclude(sweep, findings, fleet, NOW)[0]


def test_busy_hosts_are_no_reason_for_a_job_that_stands_still_or_ended() -> None:
    """Its first line told why steps are longer, of a job that made none for 15 minutes."""
    stands = [
        replace(view, phase="all_reduce", phase_age_s=900.0, progress_age_s=900.0)
        for view in status().ranks
    ]
    stalled = replace(status(), ranks=tuple(stands), stalled=True, progress_age_s=900.0)
    ends = [replace(view, alive=False, exit_status=0) for view in status().ranks]
    ended = replace(status(), ranks=tuple(ends))
    for job in (stalled, ended):
        assert list(hosts_may_account(job, told(STARVED))) == []
    assert "steps are longer" not in concluded(stalled).title


@pytest.mark.parametrize(
    "hints",
    [
        [("", FaultClass.NETWORK_LINK)],
        [("n2", FaultClass.STRAGGLER_SLOW), ("n3", FaultClass.GPU_SLOW)],
    ],
)
def test_busy_hosts_are_not_the_first_line_where_another_lead_stands(
    hints: list[tuple[str, FaultClass]],
) -> None:
    """Paths lost 2 % of what was sent, and the first line spoke of busy hosts."""
    leads = [
        Evidence("a.lead", Subject(node), Weight.HINTS, fault, Role.ROOT, f"of {fault}", "a lead")
        for node, fault in hints
    ]
    verdict = concluded(status(), *leads)
    assert verdict.fault is FaultClass.UNKNOWN
    assert "its hosts have more to do" not in verdict.title
    assert "its hosts have more to do" in concluded(status()).title


def test_where_main_threads_are_told_they_alone_account_for_longer_steps() -> None:
    """A loader's or a proxy's thread may always stand so, and no step needs it."""
    (hosts,) = hosts_may_account(status(), told(STARVED, mains={n: 40.0 for n in range(4)}))
    assert "the main thread of the usual rank is ready without a CPU for 40 %" in hosts.text
    assert not list(hosts_may_account(status(), told(STARVED, mains={n: 2.0 for n in range(4)})))


@pytest.mark.parametrize(
    ("job", "reports"),
    [
        (status(now_s=0.6), told(STARVED)),  # more than standing without a CPU makes of it
        (status(), told({rank: 9.0 for rank in range(4)})),  # they hardly stand
        (status(), told({**STARVED, 2: 3.0})),  # one has all it wants, and is as slow
        (status(), told({0: 60.0, 1: 60.0, 2: 60.0})),  # of one rank nobody knows
        (status(), told(STARVED, load=1.0)),  # the hosts have little to do
        (status(), told(STARVED, throttled_pct=4.0)),  # a limit makes them stand
        (status(load_s=0.06), told(STARVED)),  # batches come later
        (status(now_s=0.25), told(STARVED)),  # no step became longer
    ],
)
def test_what_busy_hosts_cannot_account_for_is_not_said_to_be_theirs(
    job: JobStatus, reports: list[NodeReport]
) -> None:
    assert list(hosts_may_account(job, reports)) == []
