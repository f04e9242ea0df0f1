"""What rules for quiet lines must not silence, read by the whole classifier, the words too."""

# ruff: noqa: E501 - a log line is quoted whole

from pathlib import Path

import pytest

from brctl.engine.logs.classify import Classifier
from brctl.model.fault import FaultClass, Origin
from brctl.model.log_verdict import LogVerdict

NO_COUNT = [
    ("Checkpoint save failed: 0 bytes written to /ckpt/step_100", "storage-checkpoint"),
    ("checkpoint save failed: None", "storage-checkpoint"),
    ("checkpoint save failed: 0/8 shards written", "storage-checkpoint"),
    ("fabric manager failed: 0 NVSwitches initialized", "driver-firmware"),
    ("mlx5_0 link down: 0 of 8 ports active", "network-link"),
    ("IB link down: none of the ports is active", "network-link"),
    ("loss is nan: False -> True", "numeric-nan"),
    ("GPU 2 Xid 74 NVLink error, count=0x0", "nvlink"),
]
NO_OPTION = [
    ("INFO worker.py: EngineConfig(model=x) -> NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", "gpu-lost"),
    ("INFO worker.py: EngineConfig(model=x, last='NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", "gpu-lost"),
    ("engine EngineArgs(model='llama', tensor_parallel_size=8) failed: CUDA out of memory. Tried to allocate 20.00 GiB", "gpu-oom"),
    ("Failed to launch ClusterConfig(nodes=4): srun: error: Node failure on gpu-7", "node-failure"),
]  # fmt: skip
NOT_CAUGHT = [
    ("WARNING:ray.train:Worker failed: ModuleNotFoundError: No module named 'flash_attn'", "environment-mismatch"),
    ("WARNING:fastkernels.loader:ModuleNotFoundError: No module named 'flash_attn', giving up", "environment-mismatch"),
    ("WARNING:myproj.launch:ImportError: libcudart.so.12: cannot open shared object file: No such file or directory\nWARNING:myproj.launch:giving up", "environment-mismatch"),
]  # fmt: skip
WITNESS_QUOTES = [
    ("node gpu-7 reason: kernel panic - not syncing: Fatal machine check; marked dead", "node-failure"),
    ("NVRM: Xid (PCI:0000:3b:00): 79, node agent: no heartbeat from GPU", "gpu-lost"),
]  # fmt: skip
REQUEUED = (
    "slurmstepd: error: *** JOB 33 ON n7 CANCELLED AT 2026-01-01T00:00:00 DUE TO JOB REQUEUE ***"
)
LIMIT = "slurmstepd: error: *** JOB 33 ON n7 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***"
SIGNALS = [
    ("received SIGUSR1, dumping stack traces", Origin.INFRA),
    ("submitit WARNING - Caught signal SIGUSR2 on n7: this job is preempted.", Origin.INFRA),
    ("submitit WARNING - Caught signal SIGUSR2 on n7: this job is timed-out.", Origin.USER),
    ("submitit INFO - Requeued job 33 (9 remaining timeouts)", Origin.USER),
    ("Job 33 received SIGUSR1, re-queueing", Origin.USER),
    ("+ scontrol requeue 33", Origin.USER),
]


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier()


def classify(classifier: Classifier, folder: Path, text: str) -> LogVerdict:
    log = folder / "a.log"
    log.write_text(f"{text}\n")
    return classifier.classify_paths([log]).overall


@pytest.mark.parametrize(("text", "fault"), NO_COUNT + NO_OPTION + NOT_CAUGHT + WITNESS_QUOTES)
def test_a_cause_beside_quiet_words_keeps_its_class(
    classifier: Classifier, tmp_path: Path, text: str, fault: str
) -> None:
    assert classify(classifier, tmp_path, text).fault.value == fault


@pytest.mark.parametrize(("line", "side"), SIGNALS)
def test_only_a_job_that_says_so_requeued_itself(
    classifier: Classifier, tmp_path: Path, line: str, side: Origin
) -> None:
    """A handled signal alone may be a preemption's, or a request for stack traces."""
    found = classify(classifier, tmp_path, f"{line}\n{REQUEUED}")
    assert (found.fault, found.origin) == (FaultClass.PREEMPTION_SIGTERM, side)


def test_a_bare_exception_before_the_limit_is_the_first_lead(
    classifier: Classifier, tmp_path: Path
) -> None:
    """The rules say user code; the words speak for the limit, which follows from it here."""
    lines = ["Traceback (most recent call last):", '  File "train.py", line 3, in <module>']
    lines += ["    main()", "KeyError: 'foo'", LIMIT]
    found = classify(classifier, tmp_path, "\n".join(lines))
    assert (found.fault, found.origin) == (FaultClass.UNKNOWN, Origin.USER)
    assert found.leads[0].fault is FaultClass.USER_CODE


SICK_LAST = [
    (
        "port 1: symbol errors: 0, link downed: 0\nport 1: symbol errors: 90321, link downed: 12",
        "network-link",
    ),
    ("Xid: 0 on GPU 0\nXid: 79 on GPU 3", "gpu-lost"),
]


@pytest.mark.parametrize(("text", "fault"), SICK_LAST)
def test_a_sound_line_of_the_same_form_hides_no_sick_one(
    classifier: Classifier, tmp_path: Path, text: str, fault: str
) -> None:
    assert classify(classifier, tmp_path, text).fault.value == fault


def test_victims_do_not_outvote_the_input_that_tells_the_cause(
    classifier: Classifier, tmp_path: Path
) -> None:
    """However many there are: their words say what they wait for."""
    waits = "rank {}: lustre storage target silent, object storage reads hang on ost, mds evicts"
    for rank in range(17):
        (tmp_path / f"rank-{rank:02}.log").write_text(waits.format(rank) + "\n")
    cause = "RuntimeError: DataLoader worker (pid 33) is killed by signal: Bus error."
    (tmp_path / "rank-99.log").write_text(cause + "\n")
    found = classifier.classify_paths([tmp_path]).overall
    assert found.fault is FaultClass.DATA_LOADER
    assert found.probability > 0.8
