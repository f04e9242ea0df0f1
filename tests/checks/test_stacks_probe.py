"""job.stacks reads stacks with py-spy where it is, and says what it could not read."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checks.probes import read

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
