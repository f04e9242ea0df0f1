"""Counters of errors that one node has and no other, in a job whose collectives became longer.

They count from the start of a driver, so that alone they tell of no moment and accuse nobody: where
one node has hundreds, every other next to none, and the job waits longer in collectives than it
did, or much where nobody knows its pace, the node is a lead.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from brctl.evidence.operators import is_number
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import NodeReport

LEAST_ERRORS = 100
"""Fewer are what a plug leaves behind (own)."""

TIMES_THE_NEXT = 20
"""Of a fleet with worn cables all have some; the odd one has so many times the next one's (own)."""

LEAST_NODES = 3

_COUNTERS = {
    "fabric.ibport.symbol_error": FaultClass.NETWORK_IB,
    "fabric.ibport.link_error_recovery": FaultClass.NETWORK_IB,
    "fabric.ibport.port_rcv_errors": FaultClass.NETWORK_IB,
    "fabric.ibport.local_link_integrity_errors": FaultClass.NETWORK_IB,
    "fabric.eth.rx_crc_errors": FaultClass.NETWORK_ETH,
    "gpu.nvlink.replays": FaultClass.NVLINK,
    "gpu.nvlink.crc_flit_errors": FaultClass.NVLINK,
}


@dataclass(frozen=True, slots=True)
class _Count:
    node: str
    device: str
    value: float


def odd_counters(status: JobStatus, reports: Iterable[NodeReport]) -> Iterator[Evidence]:
    """A hint for each counter that is far above all others' at one node."""
    asked = [report for report in reports if report.node in status.job.nodes]
    for name, fault in _COUNTERS.items():
        first, *others = sorted(_highest(name, asked), key=lambda c: (-c.value, c.node)) or (None,)
        if first is None or len(others) < LEAST_NODES - 1:
            continue
        if first.value < max(LEAST_ERRORS, TIMES_THE_NEXT * (others[0].value + 1)):
            continue
        check, _, counter = name.rpartition(".")
        yield Evidence(
            kind="job.network.odd-counter",
            subject=Subject(first.node, first.device),
            weight=Weight.HINTS,
            fault=fault,
            role=Role.ROOT,
            source=check,
            text=f"{first.device} of {first.node} counts {first.value:.0f} {counter},"
            f" no other node more than {others[0].value:.0f}, and much of a step is spent in"
            " collectives: take two readings",
            raw=f"{name}={first.value:.0f}",
        )


def _highest(name: str, reports: Iterable[NodeReport]) -> Iterator[_Count]:
    """Each node's highest."""
    for report in reports:
        counts = [
            _Count(report.node, m.subject, float(m.value))
            for m in report.named(name)
            if is_number(m.value)
        ]
        if counts:
            yield max(counts, key=lambda count: count.value)
