"""Interfaces that differ from the others of their name: packet sizes and rates of ports."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from brctl.evidence.job.network.assess import assess_network
from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus, StepHistory, StepWindow
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus
from tests.evidence.job.network.test_assess import (
    LOSSY,
    fleet,
    longer_steps,
    mesh,
    of_node,
    reports,
)


@pytest.mark.parametrize(
    ("sizes", "named"),
    [((9000, 9000, 576, 9000), {"g03"}), ((1500, 1400, 1500, 1500, 1500), {"g02"}),
     ((1500, 9000, 1500, 1500), set()), ((1500, 1500, 9000, 9000), set()),
     ((1500, 9000), set()), ((1500, 1500, 1500), set())],
)  # fmt: skip
def test_a_node_whose_interface_sends_smaller_packets_than_the_others_is_named(
    sizes: tuple[int, ...], named: set[str]
) -> None:
    job = fleet(len(sizes))
    status = JobStatus(job, (), 40, 0.1, stalled=False, silent=())
    found = assess_network(status, packet_sizes(job, sizes))
    assert {e.subject.node for e in found} == named
    assert {e.weight for e in found} <= {Weight.HINTS}


def packet_sizes(job: Job, sizes: Sequence[int]) -> list[NodeReport]:
    return [
        NodeReport(
            node, Outcome.ANSWERED,
            (CheckResult("fabric.eth", ProbeStatus.MEASURED,
                         (Measurement("fabric.eth.mtu", "nic:eth0", size),)),),
        )
        for node, size in zip(job.nodes, sizes, strict=True)
    ]  # fmt: skip


def test_a_packet_size_that_was_always_odd_makes_no_job_uneven() -> None:
    """It convicts where every step became longer, and is a hint where some did."""
    job = fleet(4)
    even = [StepWindow(n, 25, 1.0, mean_s=1.0, trimmed_mean_s=1.0) for n in (0, 25, 50)]
    since = [StepWindow(n, 25, 1.0, mean_s=3.0, trimmed_mean_s=3.0) for n in (75, 100)]
    history = StepHistory((*even, since[0]), since[1], since[1])
    status = JobStatus(job, (), 124, 0.1, stalled=False, silent=(), history=history)
    found = assess_network(status, packet_sizes(job, (9000, 9000, 576, 9000)))
    assert [(item.subject.node, item.weight) for item in found] == [("g03", Weight.HINTS)]


PAST = tuple(StepWindow(25 * n, 25, 1.0, wait_s=0.1) for n in range(4))
WAITS_LONGER = StepHistory(PAST, StepWindow(100, 25, 2.0, wait_s=1.0))
COMPUTES_LONGER = StepHistory(PAST, StepWindow(100, 25, 2.0, wait_s=0.1))
AS_BEFORE = StepHistory(PAST, StepWindow(100, 25, 1.0, wait_s=0.1))


def slow_port(
    history: StepHistory, slow: str = "g03", state: str = "ACTIVE", *, stalled: bool = False
) -> tuple[Evidence, ...]:
    """Five nodes whose ports run at 400 Gbit/s, but for one at 100."""
    job = fleet(5)
    answers = [
        NodeReport(
            node, Outcome.ANSWERED,
            (CheckResult("fabric.ibport", ProbeStatus.MEASURED, (
                Measurement("fabric.ibport.state", "ibport:mlx5_0/1",
                            state if node == slow else "ACTIVE"),
                Measurement("fabric.ibport.gbit_per_s", "ibport:mlx5_0/1",
                            100 if node == slow else 400),
            )),),
        )
        for node in job.nodes
    ]  # fmt: skip
    status = JobStatus(job, (), 40, 0.1, stalled=stalled, silent=(), history=history)
    return assess_network(status, answers)


@pytest.mark.parametrize(
    ("history", "weight"), [(WAITS_LONGER, Weight.CONVICTS), (StepHistory(), Weight.HINTS)]
)
def test_the_one_port_that_is_slower_is_what_longer_collectives_wait_for(
    history: StepHistory, weight: Weight
) -> None:
    """It was `unknown`, and a young job with it no-fault at 0.75."""
    (item,) = slow_port(history)
    assert (item.subject.node, item.fault, item.weight) == ("g03", FaultClass.NETWORK_IB, weight)
    assert "mlx5_0/1 of g03 runs at 100 Gbit/s, 4 other nodes run at 400" in item.text


@pytest.mark.parametrize("history", [AS_BEFORE, COMPUTES_LONGER])
def test_a_slower_port_that_no_step_waits_longer_for_is_nothing_to_the_job(
    history: StepHistory,
) -> None:
    assert slow_port(history) == ()


def test_a_slower_port_stops_no_job_and_one_that_is_down_has_no_rate() -> None:
    assert slow_port(StepHistory(), stalled=True) == ()
    assert slow_port(WAITS_LONGER, state="DOWN") == ()


def rates_of(job: Job, nic: str, *, slow: str, rdma: bool = False) -> dict[str, CheckResult]:
    """An Ethernet port that all nodes have at 10 Gbit/s, and the slow one at 1."""
    return {
        node: CheckResult("fabric.eth", ProbeStatus.MEASURED, (
            Measurement("fabric.eth.gbit_per_s", nic, 1 if node == slow else 10),
            Measurement("fabric.ibport.state", "nic:mlx5_0", "ACTIVE" if rdma else "DOWN"),
        ))
        for node in job.nodes
    }  # fmt: skip


def with_rates(answers: list[NodeReport], *rates: Mapping[str, CheckResult]) -> list[NodeReport]:
    return [replace(a, results=(*a.results, *(r[a.node] for r in rates))) for a in answers]


def test_a_slower_port_takes_no_word_from_the_paths() -> None:
    """One of g03's management convicted it, while all paths of g02 lost packets."""
    job = fleet(5)
    status = replace(longer_steps(job), history=WAITS_LONGER)
    sick = reports(job, mesh(job), of_node(job, mesh(job), "g02", LOSSY))
    path, port = assess_network(status, with_rates(sick, rates_of(job, "nic:eno1", slow="g03")))
    assert (path.subject.node, path.weight) == ("g02", Weight.CONVICTS)
    assert (port.subject.node, port.weight) == ("g03", Weight.HINTS)


def test_only_an_ethernet_port_that_the_job_has_to_use_convicts() -> None:
    job = fleet(5)
    status = replace(longer_steps(job), history=WAITS_LONGER)
    sound = reports(job, mesh(job), {})
    only, beside = rates_of(job, "nic:eno1", slow="g03"), rates_of(job, "nic:eth0", slow="")
    rdma = rates_of(job, "nic:eno1", slow="g03", rdma=True)
    for rates, weight in (
        ((only,), Weight.CONVICTS), ((only, beside), Weight.HINTS), ((rdma,), Weight.HINTS),
    ):  # fmt: skip
        (item,) = assess_network(status, with_rates(sound, *rates))
        assert (item.subject.node, item.weight) == ("g03", weight)
