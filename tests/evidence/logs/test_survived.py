"""What was caught, done in another way or got over is no cause; checks and ends prove health."""

# ruff: noqa: E501 - a log line is quoted whole

import pytest

from brctl.evidence.logs.catalogue import READER_ANCHORS, SHIPPED, anchors_of
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.progress.counters import counters_at_zero
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.evidence.logs.severity import is_caught_by_library
from brctl.evidence.logs.signatures import health
from brctl.evidence.logs.unexplained import is_alarming
from brctl.evidence.numeric import parse_progress
from brctl.model.fault import FaultClass

INDEX = LineIndex(SHIPPED)
QUIET = (FaultClass.NO_FAULT, FaultClass.UNKNOWN)
GONE_ON_WITHOUT = [
    ("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB, falling back to nothing", FaultClass.GPU_OOM),
    ("NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus, using the other instead", FaultClass.GPU_LOST),
]  # fmt: skip
CAUGHT = [
    "WARNING:fastkernels.loader:ImportError: libfast.so.9: cannot open shared object file: No such file or directory",
    "[2026-01-02 03:04:05,678] torch._inductor.compile_fx: [WARNING] torch._dynamo.exc.BackendCompilerFailed: backend raised",
]  # fmt: skip
RAISED = [
    "ImportError: libfast.so.9: cannot open shared object file: No such file or directory",
    "WARNING:root:ImportError: libfast.so.9: cannot open shared object file: No such file or directory",
    "[2026-01-02 03:04:05,678] [WARNING] [launch.py:9:main] ImportError: libfast.so.9: cannot open shared object file: No such file or directory",
]  # fmt: skip
PROVES = [
    "rank balance: no stragglers were detected in 64 ranks",
    "memory scan: 0 bad rows found",
    "Optimization finished, best dev score of 3.25 at iteration 900",
]
PROVES_NOTHING = [
    "HBM sweep ........ : PASS",
    "[[ LINK CHECK ]] SUCCESS",
    "[PhysicalDevice(name='/physical_device:GPU:3', device_type='GPU')]",
    "no errors yet",
    "PASS threshold : 12",
    "/device:GPU:0 is not there",
]
METRICS = [
    "epoch 12, minibatch 90/90, validation error 4.250000 %",
    "test error of the best model 4.1 %",
]
ALARMS = ["validation error in field rate", "test error 5 raised by worker"]
ALARMS += [
    "test failed: error 12.5% of GPU memory corrupt",
    "test error 0.3 volts low, GPU dead",
    "valid word error 4.2 GB/s failed",
    "0 errors in memory, fabric link 3 degraded",
]


def classify(*lines: str) -> FaultClass:
    reader = LineReader("a.log", INDEX)
    for number, line in enumerate(lines, 1):
        reader.read(number, line.encode())
    return judge("a.log", reader.events()).fault


@pytest.mark.parametrize(("line", "fault"), GONE_ON_WITHOUT)
def test_doing_without_takes_nothing_from_what_failed(line: str, fault: FaultClass) -> None:
    """The same words end a job that gives up: only steps that follow show that it went on."""
    assert classify(line) is fault


@pytest.mark.parametrize("line", CAUGHT)
def test_what_a_library_warns_of_it_has_caught(line: str) -> None:
    assert is_caught_by_library(line)
    assert classify(line) is FaultClass.UNKNOWN


@pytest.mark.parametrize("line", RAISED)
def test_what_a_launcher_only_prints_was_raised(line: str) -> None:
    assert classify(line) is FaultClass.ENVIRONMENT_MISMATCH


@pytest.mark.parametrize("line", PROVES)
def test_a_check_that_found_nothing_proves_health_where_nothing_warns(line: str) -> None:
    assert classify(line) is FaultClass.NO_FAULT
    assert classify(line, "fluxd[8]: capacitor bank 3 failed to align") is FaultClass.UNKNOWN


@pytest.mark.parametrize("line", PROVES_NOTHING)
def test_words_of_a_check_alone_prove_nothing(line: str) -> None:
    assert classify(line) is FaultClass.UNKNOWN


def test_a_container_that_started_got_over_its_volumes() -> None:
    """The order decides: a volume that fails afterwards is one that fails."""
    mount = "2m   1m   4   {kubelet n7}   FailedMount   Unable to mount volumes for pod t1: exit status 32"
    started = (
        "3s   3s   1   {kubelet n7}   spec.containers{t}   Started   Started with docker id 1f2e"
    )
    assert classify(mount, started) is FaultClass.NO_FAULT
    assert classify(started, mount) is FaultClass.STORAGE_CHECKPOINT


@pytest.mark.parametrize("line", METRICS)
def test_a_metric_called_error_is_no_alarm(line: str) -> None:
    assert not is_alarming(line)


@pytest.mark.parametrize("line", ALARMS)
def test_an_error_beside_a_number_is_one(line: str) -> None:
    assert is_alarming(line)


def test_the_loss_of_an_evaluation_is_no_step() -> None:
    """It is another loss than that of the training around it."""
    assert parse_progress("Test:  [ 500/900]  eta: 0:01:10  loss: 77.1 (80.2)") is None
    assert parse_progress("Validation (12): loss: 4.1") is None
    assert parse_progress("Epoch: [3]  [ 500/900]  loss: 77.1 (80.2)") is not None
    assert parse_progress("test_run step 3 loss: 4.1") is not None


def test_verdicts_and_rates_of_nothing_are_counters_at_rest() -> None:
    rows = ["memory_check PASS", "disk_check PASS", "link_check PASS"]
    assert counters_at_zero(dict(enumerate(rows, 1)), "a.log") is not None
    rates = [" * error_rate: 0.0", " * lost_packets: 0", " * aborted_steps: 0"]
    assert counters_at_zero(dict(enumerate(rates, 1)), "a.log") is not None


def test_no_proof_is_searched_for_by_a_word_of_every_line() -> None:
    """A line with an anchor is read whole: a log of steps, two hundred times slower."""
    step = "iteration 0 of 9 | token count 0 | no decay"
    assert [a for a in anchors_of(health.SIGNATURES) if a in step and a not in READER_ANCHORS] == []
