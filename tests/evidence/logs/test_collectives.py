"""What watchdogs of several ranks say together."""

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.model.fault import FaultClass, Origin
from brctl.model.log_verdict import LogVerdict

INDEX = LineIndex(SHIPPED)


def watchdog(rank: int, op: str, size: int, group: str = "") -> str:
    """The line that a rank's watchdog prints before it ends the process."""
    return (
        f"[rank{rank}]:[E1122 03:04:0{rank}.5 ProcessGroupNCCL.cpp:689] [{group}Rank {rank}]"
        f" Watchdog caught collective operation timeout: WorkNCCL(SeqNum=88, OpType={op},"
        f" NumelIn={size}, NumelOut={size}, Timeout(ms)=600000) ran for 600012 milliseconds"
        " before timing out."
    )


def classify(*lines: str) -> LogVerdict:
    reader = LineReader("job.log", INDEX)
    for number, line in enumerate(lines, start=1):
        reader.read(number, line.encode())
    return judge("", reader.events())


def test_ranks_that_wait_at_one_number_for_other_calls_run_other_programs() -> None:
    """The code's fault: no node is named for it."""
    for other in (("BROADCAST", 512), ("ALLREDUCE", 7)):
        verdict = classify(watchdog(0, "ALLREDUCE", 512), watchdog(1, *other))
        assert (verdict.fault, verdict.origin) == (FaultClass.HANG_MISMATCH, Origin.USER), other
        assert verdict.culprit is None


def test_ranks_that_wait_for_the_same_call_are_victims() -> None:
    verdict = classify(watchdog(0, "ALLREDUCE", 512), watchdog(1, "ALLREDUCE", 512))
    assert verdict.fault is FaultClass.UNKNOWN


def test_groups_count_their_calls_each_for_itself() -> None:
    """And of calls to which ranks may bring different amounts, the amount says nothing."""
    groups = classify(
        watchdog(0, "ALLREDUCE", 512, "PG ID 1 PG GUID 3 "),
        watchdog(1, "BROADCAST", 7, "PG ID 2 PG GUID 5 "),
    )
    uneven = classify(watchdog(0, "ALLTOALL_BASE", 512), watchdog(1, "ALLTOALL_BASE", 64))
    assert {groups.fault, uneven.fault} == {FaultClass.UNKNOWN}
