"""RDMA traffic of a job over time: the sign of a stall where nothing else tells its steps."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from brctl.evidence.job.long_phases import at_work
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import CheckResult
from brctl.model.watch.state import Sighting

RULE, TRAFFIC_CHECK = "rdma-silent", "fabric.ibport"
COUNTERS = frozenset({"fabric.ibport.port_xmit_data", "fabric.ibport.port_rcv_data"})
WORD_BYTES = 4

SILENT_S = 600.0
"""ByteRobust (arXiv 2509.16293, section 4.1): no RDMA traffic for ten minutes."""

WINDOW_S = 60.0
"""Nodes tell their counters every 30 s, each at its own moment: in this time all of them have."""

IDLE_BYTES_S = 10_000.0
"""On each node so much passes although no rank sends: the subnet manager asks (own)."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a job's nodes have sent and received, and when they last did, by a monotonic clock.

    Attributes:
        carried: It was seen to carry more than an idle fabric does; else it needs none.
    """

    nodes: tuple[str, ...]
    words: int
    read_s: float
    busy_s: float
    carried: bool = False


def words_of(results: Iterable[CheckResult]) -> int | None:
    """The sum over nodes; None where one of them tells nothing."""
    total, told = 0, False
    for result in results:
        counts = [m.value for m in result.measurements if m.name in COUNTERS]
        known = [value for value in counts if type(value) is int]
        if not known:
            return None
        total, told = total + sum(known), True
    return total if told else None


def after_reading(
    before: Traffic | None, words: int, nodes: tuple[str, ...], seconds: float
) -> Traffic:
    """The job's traffic after its nodes were read again.

    The first readings after a change of nodes or a reset of counters tell nothing.
    """
    if before is None or words < before.words or nodes != before.nodes:
        return Traffic(nodes, words, seconds, seconds, before is not None and before.carried)
    spent_s = seconds - before.read_s
    if spent_s < WINDOW_S:
        return before
    sent_bytes = WORD_BYTES * (words - before.words)
    if sent_bytes > IDLE_BYTES_S * len(nodes) * spent_s:
        return Traffic(nodes, words, seconds, seconds, carried=True)
    return Traffic(nodes, words, seconds, before.busy_s, before.carried)


def traffic_sightings(
    status: JobStatus, traffic: Traffic, seconds: float, look: int
) -> Iterator[Sighting]:
    """Silence of ten minutes while ranks live and no step is seen."""
    quiet_s = seconds - traffic.busy_s
    if not traffic.carried or quiet_s < SILENT_S:
        return
    alive = any(view.alive for view in status.ranks)
    if status.ended or not alive or status.stalled is False or at_work(status):
        return
    text = f"no RDMA traffic on {len(status.job.nodes)} nodes for {quiet_s:.0f} s"
    yield Sighting(RULE, status.job.name, look, text)
