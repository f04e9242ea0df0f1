"""Who only saw that another is silent or gone claims no cause, and names where to look."""

# ruff: noqa: E501 - a log line is quoted whole

import pytest

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.model.fault import FaultClass
from brctl.model.log_verdict import LogVerdict

INDEX = LineIndex(SHIPPED)
SURE_OF_A_STOP = {FaultClass.PREEMPTION_SIGTERM: 0.97, FaultClass.NO_FAULT: 0.03}
WITNESSES = [
    ("slurmctld: error: Nodes hx-[07-09] not responding", FaultClass.NODE_FAILURE),
    ("gcs: node 81ab at 10.9.8.7 has been marked dead because it missed too many heartbeats", FaultClass.NODE_FAILURE),
    ("ray.exceptions.NodeDiedError: the node of this actor died", FaultClass.NODE_FAILURE),
    ("prted: we have lost communication with a remote daemon on hx-07", FaultClass.NODE_FAILURE),
    ("aiohttp.client_exceptions.ServerDisconnectedError: the judge went away", FaultClass.NODE_FAILURE),
    ("RuntimeError: The connection to the C10d store has failed, attempt 4", FaultClass.NODE_FAILURE),
    ("mlx5_core 0000:8a:00.0: Error cqe on cqn 0x77, opcode 0xd, syndrome 0x5", FaultClass.NETWORK_IB),
    ("RuntimeError: DataLoader worker (pid 77) is killed by signal: Terminated.", FaultClass.PREEMPTION_SIGTERM),
]  # fmt: skip
CAUSES = [
    ("slurmctld: error: Nodes hx-[07-09] not responding, setting DOWN", FaultClass.NODE_FAILURE),
    ("srun: error: Node failure on hx-07", FaultClass.NODE_FAILURE),
    ("RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error.", FaultClass.DATA_LOADER),
    ("mlx5_core 0000:8a:00.0: Error cqe on cqn 0x77, opcode 0xd, syndrome 0x4", FaultClass.NETWORK_IB),
    ("slurmstepd: error: *** JOB 71 ON hx-07 CANCELLED AT 2026-01-02T03:04:05 ***", FaultClass.PREEMPTION_SIGTERM),
]  # fmt: skip
STEP = "slurmstepd: error: *** STEP 71.0 ON hx-07 CANCELLED AT 2026-01-02T03:04:05 ***"


def classify(*lines: str, words: dict[FaultClass, float] | None = None) -> LogVerdict:
    reader = LineReader("a.log", INDEX)
    for number, line in enumerate(lines, 1):
        reader.read(number, line.encode())
    return judge("a.log", reader.events(), words=words or {})


@pytest.mark.parametrize(("line", "lead"), WITNESSES)
def test_a_witness_names_no_cause(line: str, lead: FaultClass) -> None:
    verdict = classify(line)
    assert verdict.fault is FaultClass.UNKNOWN
    assert lead in [each.fault for each in verdict.leads]


@pytest.mark.parametrize(("line", "fault"), CAUSES)
def test_what_says_more_than_silence_is_still_claimed(line: str, fault: FaultClass) -> None:
    assert classify(line).fault is fault


def test_another_line_says_why() -> None:
    """The witness stands beside it as a victim."""
    died = "kernel: Kernel panic - not syncing: Fatal exception"
    assert classify(died, WITNESSES[0][0]).fault is FaultClass.HOST_KERNEL


def test_a_node_that_answers_again_was_no_failure() -> None:
    steps = tuple(f"step {n} | loss: 2.{n} | grad norm: 1.0" for n in range(300, 306))
    back = "slurmctld: Node hx-07 now responding"
    assert classify(WITNESSES[0][0], back, *steps).fault is FaultClass.NO_FAULT


def test_a_step_cancelled_without_a_reason_is_a_lead_only() -> None:
    """Srun cancels a step by itself where a task of it fails; words cannot know who did."""
    verdict = classify(STEP, words=SURE_OF_A_STOP)
    assert verdict.fault is FaultClass.UNKNOWN
    assert verdict.leads[0].fault is FaultClass.PREEMPTION_SIGTERM


def test_a_program_that_was_told_to_end_confirms_the_cancelled_step() -> None:
    verdict = classify("[rank0]: Received SIGTERM death signal, closing", STEP)
    assert verdict.fault is FaultClass.PREEMPTION_SIGTERM
