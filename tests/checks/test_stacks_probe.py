"""job.stacks reads stacks with py-spy where it is, and says what it could not read."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.checks.probes import load_probe, read

PROGRAM = """
import threading
def wait_here():
    print("ready", flush=True)
    threading.Event().wait(60)
wait_here()
"""


@pytest.fixture
def rank(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process that waits in a known function, recorded as rank 3."""
    running = subprocess.Popen([sys.executable, "-S", "-c", PROGRAM], stdout=subprocess.PIPE)
    assert running.stdout is not None
    running.stdout.readline()
    record = {"rank": 3, "pid": running.pid}
    (tmp_path / "rank-00003.process.json").write_text(json.dumps(record))
    yield running
    running.send_signal(signal.SIGCONT)
    running.kill()
    running.wait()
    running.stdout.close()


def needs_py_spy() -> None:
    if not (Path(sys.executable).parent / "py-spy").exists() and not shutil.which("py-spy"):
        pytest.skip("py-spy is not installed")


def ask(folder: Path) -> dict[str, object]:
    found = read("job.stacks", {"ranks": [3], "log_dir": str(folder), "python": sys.executable})
    values: dict[str, object] = {name: value for (name, _), value in found.values.items()}
    return values | {"notes": found.notes, "status": found.status}


def frames(found: dict[str, object]) -> list[str]:
    threads = json.loads(str(found["job.stack.threads"]))
    assert threads[0]["thread_name"] == "MainThread"
    return [frame["name"] for frame in threads[0]["frames"]]


def test_a_waiting_rank_shows_where_it_waits(rank: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """The main thread's frames come innermost first, with state and kernel wait beside them."""
    needs_py_spy()
    found = ask(tmp_path)
    assert "wait_here" in frames(found)
    # On a busy machine the sampled process may be seen just waking.
    assert found["job.stack.state"] in ("S", "R")


def test_a_stopped_rank_can_still_be_read(rank: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """Pausing a stopped process fails, so the non-blocking way is tried first."""
    needs_py_spy()
    os.kill(rank.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, rank.pid, os.WSTOPPED | os.WNOWAIT)
    found = ask(tmp_path)
    assert found["job.stack.state"] == "T"
    assert "wait_here" in frames(found)


def test_a_rank_that_is_gone_is_said(tmp_path: Path) -> None:
    """No process record is a note, not a missing row."""
    found = read("job.stacks", {"ranks": [7], "log_dir": str(tmp_path), "python": sys.executable})
    assert found.values == {}
    assert any(note.startswith("rank 7: its process is not known") for note in found.notes)


def test_whose_code_a_frame_is_shows_in_its_path() -> None:
    """A rank that waits inside a package is told from one that stands in the job's own code."""
    place_of = import_module("checks._stacks.processes").place_of
    assert place_of("/opt/venv/lib/python3.11/site-packages/torch/nn/module.py") == "package"
    assert place_of("/usr/lib/python3/dist-packages/yaml/loader.py") == "package"
    assert place_of("/usr/lib/python3.8/threading.py") == "python"
    assert place_of("<frozen importlib._bootstrap>") == "python"
    assert place_of("/home/me/run/train.py") == "job"


def test_a_deep_stack_is_cut_at_its_outer_end_and_stays_json() -> None:
    """The controller keeps 4096 characters of one reading; half a document is no stack."""
    frame = {"name": "forward" * 6, "short_filename": "layers.py", "line": 3, "filename": "/a/x.py"}
    deep = {"thread_name": "MainThread", "frames": [dict(frame, line=n) for n in range(200)]}
    text = load_probe("job.stacks").bounded([{"thread_name": "other", "frames": []}, deep])
    assert len(text) <= 4096
    (thread,) = json.loads(text)
    assert [f["line"] for f in thread["frames"]][:3] == [0, 1, 2]
    assert len(thread["frames"]) > 10


@pytest.mark.parametrize("rows", ["6:freezer:/job\n4:cpu:/\n", "0::/job\n"])
@pytest.mark.parametrize("frozen", [True, False])
def test_a_process_frozen_by_its_control_group_is_told_apart_from_a_sleeping_one(
    rows: str, frozen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New kernels name the function that it slept in before: its machine was to be swapped."""
    processes = import_module("checks._stacks.processes")
    old, new = tmp_path / "freezer/job", tmp_path / "job"
    old.mkdir(parents=True)
    new.mkdir()
    (old / "freezer.state").write_text("FROZEN\n" if frozen else "THAWED\n")
    (new / "cgroup.events").write_text(f"populated 1\nfrozen {int(frozen)}\n")
    read_file = processes.head_of
    monkeypatch.setattr(
        processes, "head_of", lambda path: rows if path.endswith("/cgroup") else read_file(path)
    )
    assert processes.frozen_by_group(os.getpid(), str(tmp_path)) is frozen
