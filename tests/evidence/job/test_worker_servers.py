"""What a rank's worker server answers, and what not, is evidence; its stacks fill gaps."""

from dataclasses import replace

import pytest

from brctl.evidence.job.worker_servers import WorkerAnswer, assess_workers, with_tracebacks
from brctl.evidence.stacks.snapshot import RankStack
from brctl.evidence.stacks.traceback import read_traceback
from brctl.model.evidence import Weight
from brctl.model.jobs.job import example_job

TRACEBACK = """\
Thread 0x00007fba727fc6c0 (most recent call first):
  File "/opt/venv/lib/python3.11/threading.py", line 331 in wait

Current thread 0x00007fba9ac21b80 [python] (most recent call first):
  File "/opt/venv/lib/python3/site-packages/torch/distributed/distributed_c10d.py", line 7 in wait
  File "train.py", line 12 in <module>
"""


def answers(ping: str, traceback: str = "ok", ranks: int = 1) -> list[WorkerAnswer]:
    return [
        WorkerAnswer(rank, handler, outcome)
        for rank in range(ranks)
        for handler, outcome in (("ping", ping), ("dump_traceback", traceback))
    ]


@pytest.mark.parametrize(
    ("ping", "traceback", "kinds"),
    [
        ("ok", "ok", []),
        ("ok", "late", ["job.worker.held"]),
        ("late", "late", ["job.worker.silent"]),
        ("refused", "refused", []),
        ("status 404", "late", []),
        ("gone", "gone", []),
    ],
)
def test_each_pattern_means_one_state(ping: str, traceback: str, kinds: list[str]) -> None:
    """Refused or no file is a process without a server, not a stopped one."""
    found = assess_workers(answers(ping, traceback), example_job())
    assert [e.kind for e in found] == kinds
    assert {e.weight for e in found} <= {Weight.HINTS}


def test_many_ranks_with_one_pattern_accuse_nobody() -> None:
    """All held alike is what the program does."""
    found = assess_workers(answers("ok", "late", ranks=8), example_job())
    assert {e.weight for e in found} == {Weight.CONTEXT}


def test_ranks_the_job_does_not_have_are_left_out() -> None:
    assert assess_workers([WorkerAnswer(99, "ping", "late")], example_job()) == ()


def test_the_main_thread_is_the_last_one() -> None:
    """Python lists threads newest first."""
    expected = ("distributed_c10d.py:wait", "train.py:<module>")
    assert read_traceback(TRACEBACK) == expected
    assert read_traceback(TRACEBACK + "...\n") == (), "the main thread was left out"
    assert read_traceback("") == ()
    assert read_traceback("\x00\xff" * 900) == ()


def test_a_stack_from_outside_stays_and_a_missing_one_is_filled() -> None:
    """py-spy sees a stopped rank; the rank's own word stands in where it saw none."""
    told = [WorkerAnswer(r, "dump_traceback", "ok", TRACEBACK.encode()) for r in (0, 1)]
    seen, filled = with_tracebacks([RankStack(0, ("a.py:f",)), RankStack(1, (), note="none")], told)
    assert seen.stack == ("a.py:f",)
    assert filled.stack == ("distributed_c10d.py:wait", "train.py:<module>")
    late = [replace(one, outcome="late") for one in told]
    assert with_tracebacks([RankStack(1, ())], late)[0].stack == ()
