"""job.loader looks twice at the processes that make batches, and times a file for other nodes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from types import ModuleType

import pytest

from brctl.evidence.job.data.loader_processes import read_loaders, read_path_answers
from brctl.evidence.job.data.loaders import files_waited_for
from brctl.model.command import Outcome
from brctl.model.fault import FaultClass
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value
from tests.checks.probes import load_probe, read
from tests.checks.test_stacks_probe import needs_py_spy
from tests.evidence.job.test_loaders import JOB, hang, verdict_of
from tests.timeouts import TIMEOUT_S

PROGRAM = {
    "data.py": """
import os, sys, dataloader, worker
def read_shard(path):
    print(os.getpid(), flush=True)
    os.open(path, os.O_RDONLY)  # a pipe that nobody opens for writing
if os.fork() == 0:
    worker._worker_loop(read_shard, sys.argv[1])
dataloader._try_get_data()
""",
    "dataloader.py": """
import os
def _try_get_data():
    os.wait()
""",
    "worker.py": """
import fetch
def _worker_loop(read, shard):
    fetch.fetch([5, 6], read, shard)
""",
    "fetch.py": """
def fetch(possibly_batched_index, read, shard):
    read(shard)
""",
}
"""A rank and its worker, in functions named like those of PyTorch's loader."""


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[int]:
    """Process id of a worker of rank 3 that never gets its shard."""
    os.mkfifo(tmp_path / "shard-0007.tar")
    for name, text in PROGRAM.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-S", str(tmp_path / "data.py"), str(tmp_path / "shard-0007.tar")]
    rank = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert rank.stdout is not None
    (tmp_path / "rank-00003.process.json").write_text(json.dumps({"pid": rank.pid}))
    yield int(rank.stdout.readline())
    os.killpg(rank.pid, 9)
    rank.wait()
    rank.stdout.close()


def test_a_worker_that_waits_for_its_file_is_seen_with_sample_and_file(
    worker: int, tmp_path: Path
) -> None:
    """Frames, samples and path come from py-spy: a file that does not open has no descriptor."""
    needs_py_spy()
    places = {"log_dir": str(tmp_path), "python": sys.executable}
    found = read("job.loader", {"ranks": [3], "apart_s": 0.01, **places}).values
    subject = f"rank:3/{worker}"
    assert ("job.loader.state", "rank:3") in found
    assert found["job.loader.children", "rank:3"] == 1
    assert found["job.loader.pins_memory", "rank:3"] is False
    assert found["job.loader.state", subject] in ("S", "R")
    frames = json.loads(str(found["job.loader.stack", subject]))
    assert [frame["name"] for frame in frames][:2] == ["read_shard", "fetch"]
    assert found["job.loader.moved", subject] is False
    assert found["job.loader.sample", subject] == "[5, 6]"
    assert found["job.loader.file", subject] == str(tmp_path / "shard-0007.tar")
    assert ("job.loader.mount", subject) in found


THREADED = """
import os, threading, time
def start():
    if os.fork() == 0:
        os.write(1, b"%d\\n" % os.getpid())
        time.sleep(3600)
    os.wait()
threading.Thread(target=start).start()
"""


@pytest.fixture
def threaded(tmp_path: Path) -> Iterator[int]:
    """Process id of a worker of rank 3 that a thread of it started."""
    command = [sys.executable, "-S", "-c", THREADED]
    rank = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert rank.stdout is not None
    (tmp_path / "rank-00003.process.json").write_text(json.dumps({"pid": rank.pid}))
    yield int(rank.stdout.readline())
    os.killpg(rank.pid, 9)
    rank.wait()
    rank.stdout.close()


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The probe on a node without py-spy."""
    probe = load_probe("job.loader")
    monkeypatch.setattr(probe, "find_py_spy", lambda python: None)
    return probe


def rows_of(probe: ModuleType, tmp_path: Path) -> dict[tuple[str, str], object]:
    readings = probe.Readings()
    with suppress(probe.OutOfTime):
        probe.measure(readings, {"ranks": [3], "apart_s": 0.01, "log_dir": str(tmp_path)})
    return {(row["name"], row["subject"]): row["value"] for row in readings.rows}


def test_a_worker_that_a_thread_started_is_looked_at(
    threaded: int, reading: ModuleType, tmp_path: Path
) -> None:
    """The kernel lists children by the thread that started them."""
    found = rows_of(reading, tmp_path)
    assert ("job.loader.state", f"rank:3/{threaded}") in found
    assert found["job.loader.children", "rank:3"] == 1


def test_a_deadline_in_the_first_look_hides_no_process(
    threaded: int, reading: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six workers in state D cost py-spy the whole deadline; their states cost nothing."""
    states = {threaded: "D"}
    monkeypatch.setattr(reading, "process_state", lambda pid: states.get(pid, "S"))

    def never_ends(readings: object, py_spy: object, pid: int) -> None:
        raise reading.OutOfTime

    monkeypatch.setattr(reading, "threads_in", never_ends)
    found = rows_of(reading, tmp_path)
    assert found["job.loader.state", f"rank:3/{threaded}"] == "D"
    assert found["job.loader.state", "rank:3"] == "S"
    assert ("job.loader.stack", "rank:3") not in found


def frame(name: str, file: str) -> dict[str, object]:
    return {"name": name, "short_filename": file, "filename": "/job/" + file, "line": 1}


def test_a_deep_stack_keeps_the_frames_of_the_loader_and_the_innermost() -> None:
    """A forked worker has its rank's frames further out, and a dataset forty of its own."""
    loop = [frame("fetch", "torch/utils/data/_utils/fetch.py"),
            frame("_worker_loop", "torch/utils/data/_utils/worker.py")]  # fmt: skip
    deep = [frame(f"map_{n}", "data.py") for n in range(40)]
    rank = [frame(f"main_{n}", "train.py") for n in range(40)]
    text = load_probe("job.loader").bounded([*deep, *loop, *rank])
    names = [row["name"] for row in json.loads(text)]
    assert len(names) <= 24
    assert len(text) <= 4000
    assert names[:8] == [f"map_{n}" for n in range(8)]
    assert names[-1] == "main_39"
    assert names.index("_worker_loop") == names.index("fetch") + 1


def test_a_pin_memory_thread_is_said() -> None:
    probe = load_probe("job.loader")
    main = {"thread_name": "MainThread", "frames": []}
    pins = {"thread_name": "Thread-3", "frames": [frame("_pin_memory_loop", "pin_memory.py")]}
    assert probe.pins_memory([main, pins]) is True
    assert probe.pins_memory([main]) is False


def test_who_sleeps_is_left_out_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that is stuck may be the seventeenth."""
    probe = load_probe("job.loader")
    monkeypatch.setattr(probe, "process_state", {1: "S", 2: "S", 3: "D", 4: "R"}.get)
    assert probe.awake_first([1, 2, 3, 4]) == [3, 4, 1, 2]


def look(tmp_path: Path, rank: int) -> NodeReport:
    """The stuck process of rank 3 as it would be of another rank, on that rank's node."""
    places = {"log_dir": str(tmp_path), "python": sys.executable}
    found = read("job.loader", {"ranks": [3], "apart_s": 0.01, **places}).values
    return answer(JOB.node_of(rank), {
        (name, subject.replace("rank:3", f"rank:{rank}")): value
        for (name, subject), value in found.items()
    })  # fmt: skip


def answer(node: str, found: Mapping[tuple[str, str], Value]) -> NodeReport:
    rows = tuple(Measurement(*key, value) for key, value in found.items())
    result = CheckResult("job.loader", ProbeStatus.MEASURED, rows)
    return NodeReport(node, Outcome.ANSWERED, (result,))


def needs_kernel_waits() -> None:
    """Skip on a kernel that tells of no process at all where it sleeps."""
    kernel_wait = load_probe("job.loader").kernel_wait
    if not any(kernel_wait(int(name)) for name in os.listdir("/proc") if name.isdecimal()):
        pytest.skip("the kernel does not say where processes wait")


@pytest.mark.parametrize(("ranks", "nodes"), [((5,), ("n6",)), ((1, 4, 6), ())])
def test_from_the_probe_to_the_verdict_one_node_is_a_lead_and_three_of_eight_are_storage(
    worker: int, tmp_path: Path, ranks: tuple[int, ...], nodes: tuple[str, ...]
) -> None:
    """Another node is answered about the same file, by the same probe."""
    needs_py_spy()
    needs_kernel_waits()
    until = monotonic() + TIMEOUT_S
    processes = read_loaders([look(tmp_path, rank) for rank in ranks])
    # py-spy wakes the process for moments, and it may not have come to its file yet.
    while any(p.kernel_wait in ("", "0") for p in processes) and monotonic() < until:
        processes = read_loaders([look(tmp_path, rank) for rank in ranks])
    paths = files_waited_for(processes)
    assert paths == (str(tmp_path / "shard-0007.tar"),)
    asked = read("job.loader", {"ranks": [0], "waiting": [], "paths": list(paths)}).values
    answers = read_path_answers([answer("n1", asked)])
    assert [found.answers for found in answers] == [True]
    fault, named, _ = verdict_of(hang(ranks), processes, answers)
    assert (fault, named) == (FaultClass.STORAGE_CHECKPOINT, nodes)


def test_another_node_times_the_file_and_never_reads_a_pipe(tmp_path: Path) -> None:
    """A file and a pipe are answered, a missing one is not."""
    (tmp_path / "plain").write_bytes(b"x" * 9000)
    os.mkfifo(tmp_path / "pipe")
    paths = [str(tmp_path / name) for name in ("plain", "pipe", "gone")]
    found = read("job.loader", {"ranks": [3], "waiting": [], "paths": paths}).values
    answers = [found["job.loader.path_answers", f"path:{path}"] for path in paths]
    assert answers == [True, True, False]
    assert not [name for name in found if name[1].startswith("rank:")]


def test_a_node_opens_no_path_that_is_no_data_whoever_asks(tmp_path: Path) -> None:
    """Nor through a link of the file system that both nodes mount; and few of them."""
    (tmp_path / "link").symlink_to("/proc/version")
    (tmp_path / "plain").write_bytes(b"x")
    link, plain = str(tmp_path / "link"), str(tmp_path / "plain")
    asked = {"ranks": [3], "waiting": []}
    refused = ["/proc/version", "/net/evil/x", f"{tmp_path}/../../proc/version", "plain"]
    found = read("job.loader", {**asked, "paths": refused})
    assert not found.values
    assert len([note for note in found.notes if "no data file, not opened" in note]) == 4
    answers = read("job.loader", {**asked, "paths": [link, *[plain] * 3, plain + "5"]}).values
    assert answers["job.loader.path_answers", "path:" + link] is False
    assert answers["job.loader.path_answers", "path:" + plain] is True
    assert ("job.loader.path_answers", "path:" + plain + "5") not in answers


def test_the_innermost_mount_of_a_path_is_found(tmp_path: Path) -> None:
    """By whole parts of its name: /data2 is not below /data."""
    rows = [
        "21 1 8:1 / / rw - ext4 /dev/sda1 rw",
        "30 21 0:40 / /data rw,nosuid - nfs4 filer:/data rw",
        "31 30 0:41 / /data/own rw - tmpfs tmpfs rw",
        "junk",
    ]
    (tmp_path / "mountinfo").write_text("\n".join(rows))
    mount_of = load_probe("job.loader").mount_of
    mounts = str(tmp_path / "mountinfo")
    assert mount_of("/data/shard", mounts) == ("/data", "nfs4", "filer:/data")
    assert mount_of("/data/own/x", mounts) == ("/data/own", "tmpfs", "tmpfs")
    assert mount_of("/data2/shard", mounts)[0] == "/"


def test_an_endless_transform_stands_where_it_stood_whatever_it_calls() -> None:
    """The sample and the job's own functions are compared; what these call always differs."""
    where = load_probe("job.loader").where
    own = {"name": "decode", "filename": "/job/data.py"}
    fetch = {"name": "_MapDatasetFetcher.fetch", "filename": "/x/site-packages/fetch.py",
             "locals": [{"name": "possibly_batched_index", "repr": "[5]"}, "junk"]}  # fmt: skip
    inside = {"name": "resize", "filename": "/x/site-packages/pil.py"}
    assert where([inside, own, fetch]) == where([own, fetch])
    other = {**fetch, "locals": [{"name": "possibly_batched_index", "repr": "[6]"}]}
    assert where([own, other]) != where([own, fetch])
