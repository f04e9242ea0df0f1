"""What runners make of answers: foreign output, half-dead groups, launches that never end."""

import json
import os
import stat
from pathlib import Path

import pytest

from brctl.engine.search import group_runner_nccl_tests
from brctl.engine.search.group_runner import RoundOrder, read_results
from brctl.engine.search.group_runner_nccl_tests import NcclTestsRunner, read_output
from brctl.engine.search.group_runner_torch import group_result, read_reply
from brctl.model.command import CommandResult, Outcome
from brctl.model.localisation import GroupResult
from tests.timeouts import TIMEOUT_S

ORDER = RoundOrder(1, "all_reduce", 1 << 20, 4, (("a", "b"), ("c", "d")), 5.0)
OUTPUT = """\
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1048576 step: 1048576(bytes) warmup iters: 1
#  Rank  0 Group  0 Pid   1234 on      gpu1 device  0 [0x00] NVIDIA H100
#       size         count      type   redop    root     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)
 1048576 262144 float sum -1  23.81 44.04 82.57 {wrong}  23.40 44.81 84.02 0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 83.295
"""


@pytest.mark.parametrize(
    "row",
    [None, 3, [], {"failed": True}, {"failed": 9}, {"failed": -1}, {"failed": "0"}, {"reps": 0},
     {"failed": 0, "reps": 5}, {"failed": 0, "busbw_gb_per_s": -1},
     {"failed": 0, "busbw_gb_per_s": "x"},
     {"failed": 0.0}, {}],
)  # fmt: skip
def test_a_row_that_makes_no_sense_is_not_measured(row: object) -> None:
    """No shape of nonsense reads as a pass."""
    (result,), notes = read_results([row], 4)
    assert result.failed is None
    assert notes


def test_null_is_silence_and_silence_counts_as_failing() -> None:
    """A group that did not answer failed all its repetitions, and is said to be silent."""
    (result,), _ = read_results([{"reps": 4, "failed": None}], 4)
    assert result == GroupResult(4, 4, None, silent=True)


def reply(node: str, document: object, outcome: Outcome = Outcome.ANSWERED) -> CommandResult:
    return CommandResult(node, outcome, 0, json.dumps(document).encode(), b"", 0.1)


def rank(done: int = 4, wrong: tuple[int, ...] = (), error: str = "") -> dict[str, object]:
    return {"done": done, "wrong": list(wrong), "seconds": [0.5] * done, "error": error,
            "set_up": True}  # fmt: skip


def test_wrong_repetitions_of_any_rank_count_once() -> None:
    """Two ranks that see the same wrong sum are one failed repetition."""
    replies = [
        read_reply(reply("a", {"ranks": [rank(wrong=(1, 2))]})),
        read_reply(reply("b", {"ranks": [rank(wrong=(2,))]})),
    ]
    result, note = group_result(replies, ORDER)
    assert (result.failed, result.silent, note) == (2, False, "")
    assert result.busbw_gb_per_s == pytest.approx((1 << 20) / 0.5 / 1e9)


def test_an_unfinished_rank_makes_its_group_silent() -> None:
    """A rank that never finished fails the whole group, with what it said."""
    replies = [
        read_reply(reply("a", {"ranks": [rank()]})),
        read_reply(reply("b", {"ranks": [rank(done=1, error="Connection closed by peer")]})),
    ]
    result, note = group_result(replies, ORDER)
    assert result == GroupResult(4, 4, None, silent=True)
    assert "Connection closed" in note


@pytest.mark.parametrize(
    "answer",
    [
        reply("b", {}, Outcome.UNREACHABLE),
        CommandResult("b", Outcome.ANSWERED, 1, b"bash: python: not found", b"", 0.1),
        reply("b", [1, 2]),
        reply("b", {"problem": "cannot import torch: no"}),
        reply("b", {"ranks": [{"done": 0, "error": "EADDRINUSE", "set_up": False}]}),
    ],
)
def test_what_is_not_the_groups_fault_is_not_measured(answer: CommandResult) -> None:
    """An unreachable node, a missing torch or a taken port says nothing about collectives."""
    replies = [read_reply(reply("a", {"ranks": [rank()]})), read_reply(answer)]
    result, note = group_result(replies, ORDER)
    assert result.failed is None
    assert note


def test_nccl_tests_output_is_read() -> None:
    """Bus bandwidth of both directions, and wrong values as a failure."""
    good, _ = read_output(0, OUTPUT.format(wrong=0))
    assert good.failed == 0
    assert good.busbw_gb_per_s == pytest.approx(83.295)
    wrong, _ = read_output(0, OUTPUT.format(wrong=7))
    assert wrong.failed == 1


def test_a_launch_that_fails_is_not_a_failing_collective() -> None:
    """No binary, no allocation: unmeasured. Died after the ranks had started: failed."""
    assert read_output(None, "srun: No such file")[0].failed is None
    assert read_output(1, "srun: error: Unable to create step")[0].failed is None
    started = OUTPUT.splitlines()[0] + "\ngpu1: Test NCCL failure: remote process exited\n"
    assert read_output(3, started)[0].failed == 1


async def test_mpirun_is_started_once_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in mpirun sees the hosts of its group; one with node `d` hangs and is cut.

    It is cut when it takes much longer than the others took, however long they did.
    """
    monkeypatch.setattr(group_runner_nccl_tests, "_LEAST_PATIENCE_S", 0.5)
    script = tmp_path / "mpirun"
    body = OUTPUT.format(wrong=0)
    hangs = 'case "$*" in *d:8*) sleep 600;; esac'
    script.write_text(f"#!/bin/sh\n{hangs}\ncat <<'END'\n{body}END\n")
    program = tmp_path / "all_reduce_perf"
    program.write_text("#!/bin/sh\n")
    for path in (script, program):
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    order = RoundOrder(1, "all_reduce", 1 << 20, 4, (("a", "b"), ("c", "d")), TIMEOUT_S)
    answer = await NcclTestsRunner(8, "mpirun").run(order)
    assert [r.failed for r in answer.results] == [0, 1]
    assert [r.silent for r in answer.results] == [False, True]
