"""Counters of errors accuse nobody but the one node that has them in a job that waits longer."""

import pytest

from brctl.evidence.job.network.odd_counters import odd_counters
from brctl.model.command import Outcome
from brctl.model.evidence import Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus

JOB = example_job()


@pytest.mark.parametrize(
    ("counts", "named"),
    [
        ((2, 0, 65535, 1), "n3"),
        ((2, 0, 65, 1), ""),
        ((9000, 0, 65535, 1), ""),
        ((0, 65535), ""),
    ],
    ids=["one alone", "few", "worn cables elsewhere", "two cannot outvote each other"],
)
def test_only_a_node_far_above_all_others_is_a_lead(counts: tuple[int, ...], named: str) -> None:
    rows = [
        NodeReport(
            f"n{n}", Outcome.ANSWERED,
            (CheckResult("fabric.ibport", ProbeStatus.MEASURED,
                         (Measurement("fabric.ibport.symbol_error", "nic:mlx5_0", count),)),),
        )
        for n, count in enumerate(counts, 1)
    ]  # fmt: skip
    status = JobStatus(JOB, (), 40, 0.1, stalled=False, silent=())
    found = list(odd_counters(status, rows))
    assert [item.subject.node for item in found] == ([named] if named else [])
    assert {(i.weight, i.fault) for i in found} <= {(Weight.HINTS, FaultClass.NETWORK_IB)}
