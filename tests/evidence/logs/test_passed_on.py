"""An exception that only passes on another one decides nothing where that one can be read."""

import pytest

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.passed_on import passes_on
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.model.evidence import Role
from brctl.model.fault import FaultClass
from brctl.model.log_verdict import LogVerdict

INDEX = LineIndex(SHIPPED)
CARRIER = (
    "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([1])"
)
SAVE = "/opt/p/lib/python3.11/site-packages/torch/distributed/checkpoint"


def classify(*lines: str) -> LogVerdict:
    reader = LineReader("rank-0.log", INDEX)
    for number, line in enumerate(lines, 1):
        reader.read(number, line.encode())
    return judge("rank-0.log", reader.events())


def saving(last: str, mark: str = "") -> tuple[str, ...]:
    """What torch prints on every rank when rank 1 failed while a checkpoint was saved."""
    lines = (
        "Traceback (most recent call last):",
        '  File "/home/ann/train.py", line 17, in main',
        f'  File "{SAVE}/utils.py", line 263, in all_reduce',
        CARRIER,
        "Traceback (most recent call last): (RANK 1)",
        f'  File "{SAVE}/utils.py", line 241, in all_reduce',
        f'  File "{SAVE}/state_dict_saver.py", line 500, in write_data',
        last,
    )
    return tuple(mark + line for line in lines)


@pytest.mark.parametrize("mark", ["", "[rank0]: ", "[2026-11-23 04:05:06] [rank0]: "])
@pytest.mark.parametrize(
    ("last", "fault"),
    [
        ("RuntimeError: DataLoader worker (pid 181) is killed by signal: Killed.", "data-loader"),
        ("OSError: [Errno 28] No space left on device", "disk-full"),
        (
            "OSError: [Errno 5] Input/output error: '/ckpt/step-10/__1_0.distcp'",
            "storage-checkpoint",
        ),
        ("TypeError: cannot pickle '_io.TextIOWrapper' object", "user-code"),
    ],
)
def test_what_the_other_rank_met_decides(last: str, fault: str, mark: str) -> None:
    """The save ended on all ranks because one could not go on, and its own exception says why."""
    said = classify(*saving(last, mark))
    assert said.fault is FaultClass(fault)
    carriers = [line.role for line in said.evidence if "CheckpointException" in line.text]
    assert carriers == [Role.VICTIM]


def test_a_failed_save_whose_reason_is_cut_off_is_the_storages() -> None:
    """Nothing else is known of it, and most saves fail for where they write to."""
    assert classify(*saving("...")[:-1]).fault is FaultClass.STORAGE_CHECKPOINT


def test_a_later_traceback_explains_no_earlier_save() -> None:
    """Only a traceback that the exception prints itself is another rank's."""
    lines = (
        *saving("...")[:4],
        "Traceback (most recent call last):",
        "BrokenPipeError: [Errno 32]",
    )
    assert classify(*lines).fault is FaultClass.STORAGE_CHECKPOINT


@pytest.mark.parametrize(
    ("type_name", "words"),
    [
        ("ray.train.base_trainer.TrainingFailedError", "The Ray Train run failed."),
        ("RuntimeError", "Training stopped. See the worker logs above for the cause."),
        ("RuntimeError", "check the logs for the root cause"),
        ("LaunchError", "one or more workers failed"),
        ("RuntimeError", "another rank has failed, aborting"),
    ],
)
def test_words_that_point_to_another_exception_claim_nothing(type_name: str, words: str) -> None:
    """A launcher knows that a process ended, not what ended it."""
    assert passes_on(type_name, words)
    assert classify(f"{type_name}: {words}").fault is FaultClass.UNKNOWN


@pytest.mark.parametrize(
    ("type_name", "words"),
    [
        ("ValueError", "check the shape of the input"),
        ("RuntimeError", "failed to open the log file /data/x"),
        ("KeyError", "'rank'"),
        ("RuntimeError", "the number of workers must be positive"),
    ],
)
def test_words_that_only_name_logs_or_workers_are_no_pointer(type_name: str, words: str) -> None:
    """An exception of its own may speak of logs, ranks and workers."""
    assert not passes_on(type_name, words)
