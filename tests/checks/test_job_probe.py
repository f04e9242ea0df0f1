"""job.ranks reads what launcher and training loop wrote, and what the kernel says."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checks.probes import Read, read


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    running = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
    yield running
    running.kill()
    running.wait()


def start_ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])


def write(folder: Path, pid: int, ticks: int, **progress: object) -> None:
    started = {"rank": 3, "pid": pid, "start_ticks": ticks, "node": "n1", "started_at": 1.0}
    (folder / "rank-00003.process.json").write_text(json.dumps(started))
    (folder / "rank-00003.log").write_bytes(b"x" * 9000 + b"\nlast \x1b[31mwords\xff")
    body = {"rank": 3, "pid": pid, "step": 20, "phase": "all_reduce", "loss": None, **progress}
    (folder / "rank-00003.json").write_text(json.dumps(body))


def look(folder: Path) -> Read:
    places = {"log_dir": str(folder), "progress_dir": str(folder)}
    return read("job.ranks", {"ranks": [3], **places})


def test_a_running_rank_is_alive_with_its_phase(
    tmp_path: Path, process: subprocess.Popen[bytes]
) -> None:
    """Process, phase and age are read; what was not measured (null) is left out."""
    now = time.time()
    write(tmp_path, process.pid, start_ticks(process.pid), phase_since=now - 30, at=now - 30)
    found = look(tmp_path)
    assert found.values["job.rank.alive", "rank:3"] is True
    assert found.values["job.rank.phase", "rank:3"] == "all_reduce"
    assert 29 < float(found.values["job.rank.phase_age_s", "rank:3"]) < 40
    assert ("job.rank.loss_finite", "rank:3") not in found.values


def test_a_stopped_rank_says_so(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    """SIGSTOP shows as state T."""
    write(tmp_path, process.pid, start_ticks(process.pid))
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    assert look(tmp_path).values["job.rank.process_state", "rank:3"] == "T"


def test_a_reused_pid_is_not_the_rank(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    """The start time tells a stranger with the same number."""
    write(tmp_path, process.pid, start_ticks(process.pid) + 1)
    found = look(tmp_path)
    assert found.values["job.rank.alive", "rank:3"] is False
    assert ("job.rank.process_state", "rank:3") not in found.values


def test_last_words_are_bounded(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    """Four KiB of the log's end, undecodable bytes replaced."""
    write(tmp_path, process.pid, start_ticks(process.pid))
    words = str(look(tmp_path).values["job.rank.last_words", "rank:3"])
    assert len(words) <= 4096
    assert words.endswith("words�")


def test_an_exit_status_is_read(tmp_path: Path) -> None:
    """A rank that was killed by signal 9 left -9."""
    write(tmp_path, 2**22 + 1, 1)
    (tmp_path / "rank-00003.exit.json").write_text('{"rank": 3, "exit_status": -9, "at": 1}')
    found = look(tmp_path)
    assert found.values["job.rank.exit_status", "rank:3"] == -9
    assert found.values["job.rank.alive", "rank:3"] is False


@pytest.mark.parametrize("junk", ["", "[]", "{", '{"step": "NaN", "phase": 3}', '{"step": NaN}'])
def test_a_broken_progress_file_is_a_note(tmp_path: Path, junk: str) -> None:
    """Junk from the job costs its own readings, with a note, and nothing else."""
    write(tmp_path, 2**22 + 1, 1)
    (tmp_path / "rank-00003.json").write_text(junk)
    found = look(tmp_path)
    assert ("job.rank.step", "rank:3") not in found.values
    assert any(note.startswith("rank 3:") for note in found.notes)
    assert ("job.rank.last_words", "rank:3") in found.values


def test_a_node_without_ranks_is_no_failure() -> None:
    """A standby has nothing to say about the job."""
    found = read("job.ranks", {"log_dir": "/x", "progress_dir": "/x"})
    assert found.notes == ("not supported: everything, no rank of the job runs here",)
