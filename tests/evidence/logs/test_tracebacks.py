"""Who raised an exception: the code of a frame tells, not the disk that it lies on."""

import time

import pytest

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.evidence.logs.tracebacks import classify_final
from brctl.model.fault import FaultClass
from brctl.model.log_verdict import LogVerdict

INDEX = LineIndex(SHIPPED)


def classify(*lines: str) -> LogVerdict:
    reader = LineReader("rank-0.log", INDEX)
    for number, line in enumerate(lines, 1):
        reader.read(number, line.encode())
    return judge("rank-0.log", reader.events())


@pytest.mark.parametrize(
    ("frame", "fault"),
    [
        ("/data/conda/envs/p/lib/python3.10/site-packages/torch/nn/modules/linear.py", "user-code"),
        ("/data/team/run7/train.py", "user-code"),
        ("/mnt/datasets/team/code/model/attention.py", "user-code"),
        (r"D:\data\team\code\train.py", "user-code"),
        ("/home/ann/job/data/reader.py", "data-loader"),
        ("/home/ann/job/data/template.py", "user-code"),
        ("/opt/p/lib/python3.10/site-packages/torch/utils/data/_utils/fetch.py", "data-loader"),
        ("/opt/p/lib/python3.10/site-packages/PIL/Image.py", "data-loader"),
        ("/opt/p/lib/python3.10/site-packages/streaming/base/stream.py", "data-loader"),
    ],
)
def test_a_mount_named_data_is_no_data_loader(frame: str, fault: str) -> None:
    """A path outside the libraries speaks by its file and folder, one inside by its package."""
    row = classify_final("ValueError", (frame,), "bad value", in_traceback=True)
    assert row.fault is FaultClass(fault)


@pytest.mark.parametrize(
    ("frame", "fault"),
    [
        (
            "/opt/p/site-packages/transformers/models/auto/configuration_auto.py",
            "environment-mismatch",
        ),
        ("/home/ann/job/auto/configuration.py", "user-code"),
    ],
)
def test_a_model_type_that_the_library_does_not_know_is_of_a_newer_one(
    frame: str, fault: str
) -> None:
    row = classify_final("KeyError", (frame,), "'newmodel4'", in_traceback=True)
    assert row.fault is FaultClass(fault)


@pytest.mark.parametrize(
    ("frame", "fault"),
    [
        ("/opt/p/lib/python3.10/site-packages/torch/serialization.py", "storage-checkpoint"),
        ("/home/ann/job/corpus.py", "data-loader"),
    ],
)
def test_a_file_cut_short_is_whose_reader_it_was(frame: str, fault: str) -> None:
    """`torch.load` reads checkpoints; a pickle that the program opened itself is its data."""
    for kind in (
        "EOFError: Ran out of input",
        "_pickle.UnpicklingError: pickle data was truncated",
    ):
        name, words = kind.split(": ")
        assert classify_final(name, (frame,), words, in_traceback=True).fault is FaultClass(fault)


def test_an_end_of_a_stream_is_somebody_elses() -> None:
    """A bare EOFError in a traceback is a pipe whose other end went away."""
    row = classify_final(
        "EOFError", ("/opt/p/multiprocessing/connection.py",), "", in_traceback=True
    )
    assert row.fault is None


def test_an_exception_that_quotes_an_option_is_still_the_end() -> None:
    """DDP's advice names `find_unused_parameters`, which warnings of sound jobs name too."""
    line = (
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting "
        "a new one. You can pass the keyword argument `find_unused_parameters=True`."
    )
    assert classify("Traceback (most recent call last):", line).fault is FaultClass.USER_CODE


def test_an_abort_that_completed_successfully_proves_no_health() -> None:
    """A line of alarm may have every word of a success."""
    said = classify("[n4:71] Local abort before MPI_INIT completed successfully, job will abort")
    assert said.fault is not FaultClass.NO_FAULT


def test_a_norm_that_came_back_under_a_finite_loss_is_a_skipped_step() -> None:
    """Mixed precision starts so; a norm that stays lost, or a lost loss, is what it was."""
    lost = "Epoch [1][100/600] lr: 1e-3, loss: 1.91, grad_norm: nan"
    back = "Epoch [1][200/600] lr: 1e-3, loss: 0.92, grad_norm: 3.97"
    gone = "Epoch [1][100/600] lr: 1e-3, loss: nan, grad_norm: nan"
    assert classify(lost, back).fault is not FaultClass.NUMERIC_NAN
    assert classify(lost, back, lost).fault is FaultClass.NUMERIC_NAN
    assert classify(gone, back).fault is FaultClass.NUMERIC_NAN


@pytest.mark.parametrize(
    "line",
    [
        "RESOURCE_EXHAUSTED: Attempting to reserve 5.11G at the bottom. That was not possible.",
        "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem.",
        "Total hbm usage >= 17.20G:",
    ],
)
def test_a_tpu_without_memory_is_a_gpu_without_memory(line: str) -> None:
    """XLA says it in words of its own; the class is that of the device's memory."""
    assert classify(line).fault is FaultClass.GPU_OOM


def test_seconds_of_a_download_are_no_status_of_the_store() -> None:
    """`in 557.68s` is how long it took; `503` is what the store answered."""
    assert classify("weights read from local/gcs in 557.68s").fault is not (
        FaultClass.STORAGE_CHECKPOINT
    )
    assert classify("gcs answered 503 for shard 7").fault is FaultClass.STORAGE_CHECKPOINT


def test_a_path_of_any_length_costs_little() -> None:
    """A frame is looked at again at every exception line; only the end of its path names code."""
    frames = (("/site" * 400) + "/data/reader.py",) * 4
    before = time.process_time()
    for _ in range(100):
        assert classify_final("ValueError", frames, "x", in_traceback=True).fault is (
            FaultClass.DATA_LOADER
        )
    assert time.process_time() - before < 2.0


@pytest.mark.parametrize(
    ("function", "fault"), [("__init__", "user-code"), ("__getitem__", "data-loader")]
)
def test_a_data_set_that_is_only_set_up_reads_no_data(function: str, fault: str) -> None:
    """In its constructor a broken rule of the language is the code's, in a sample the data's."""
    actual = classify(
        "Traceback (most recent call last):",
        f'  File "/home/ann/job/my_dataset.py", line 31, in {function}',
        "TypeError: 'int' object is not subscriptable",
    )
    assert actual.fault is FaultClass(fault)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("ValueError: lengths differ in part-0007.parquet", "data-loader"),
        ("AssertionError: cut 31 has 9 frames, part.000031.tar says 10", "data-loader"),
        ("ValueError: checkpoint step_7.h5 has 3 groups", "user-code"),
        ("AssertionError: fastkernels requires triton>=9.1", "environment-mismatch"),
        ("AssertionError: libfoo.so not found", "environment-mismatch"),
        ("AttributeError: module 'jax.core' has no attribute 'Thing'", "environment-mismatch"),
        ("AttributeError: module 'helpers' has no attribute 'thing'", "user-code"),
        (
            "ValueError: Error initializing torch.distributed: environment variable RANK expected",
            "nccl-config",
        ),
    ],
)
def test_the_thing_that_an_exception_names_is_what_failed(words: str, fault: str) -> None:
    """A file by its kind, a library by its name, a variable of the launch: no type tells them."""
    assert classify(words).fault is FaultClass(fault)
