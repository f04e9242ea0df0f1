"""job.ranks reads what launcher and training loop wrote, and what the kernel says."""

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checks.probes import Read, read
from tests.timeouts import TIMEOUT_S


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
    assert 29 < float(found.values["job.rank.phase_age_s", "rank:3"]) < TIMEOUT_S
    assert ("job.rank.loss_finite", "rank:3") not in found.values


def test_a_moment_that_is_still_to_come_has_no_age(
    tmp_path: Path, process: subprocess.Popen[bytes]
) -> None:
    """The clock was set back: an age of 0 said for ever that the rank makes progress."""
    now = time.time()
    write(tmp_path, process.pid, start_ticks(process.pid), phase_since=now - 3, at=now + 300)
    found = look(tmp_path)
    assert ("job.rank.progress_age_s", "rank:3") not in found.values
    assert ("job.rank.phase_age_s", "rank:3") in found.values
    assert "the clock was set back" in " ".join(found.notes)


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


def steps(folder: Path, rows: list[tuple[int, float]], **more: object) -> None:
    lines = [json.dumps({"step": s, "seconds": t, "loss": 2.0, **more}) for s, t in rows]
    (folder / "steps.ndjson").write_text("".join(line + "\n" for line in lines))


def windows(folder: Path, name: str = "step_s") -> dict[str, float]:
    found = read("job.ranks", {"ranks": [0], "log_dir": str(folder), "progress_dir": str(folder)})
    return {
        subject: float(value)
        for (kind, subject), value in found.values.items()
        if kind == f"job.steps.{name}"
    }


def test_the_jobs_own_past_is_read_in_windows(tmp_path: Path) -> None:
    """Quick steps, then six slow ones: the past knows only quick ones, recent only slow."""
    steps(tmp_path, [(n, 0.4 if n <= 114 else 0.9) for n in range(1, 121)])
    found = windows(tmp_path)
    past = [seconds for name, seconds in found.items() if name.startswith("past:")]
    assert set(past) == {0.4}
    assert len(past) >= 3
    assert (found["recent"], found["last"]) == (0.9, 0.9)


def test_the_past_of_a_long_job_is_sampled_over_the_whole_file(tmp_path: Path) -> None:
    """The tail alone would know only the slow steps of the last hours."""
    steps(tmp_path, [(n, 0.1 if n <= 4000 else 0.2) for n in range(1, 8001)], grad_norm=1.5)
    found = windows(tmp_path)
    past = {name: seconds for name, seconds in found.items() if name.startswith("past:")}
    assert set(past.values()) == {0.1, 0.2}
    assert len(past) <= 12
    first = windows(tmp_path, "first")
    assert min(first.values()) < 100


def test_warm_up_after_each_start_is_no_slow_step(tmp_path: Path) -> None:
    """A restart goes back to a checkpoint, and its first steps compile."""
    again = [(n, 9.0 if n < 43 else 0.3) for n in range(40, 60)]
    steps(tmp_path, [(n, 5.0 if n < 4 else 0.3) for n in range(1, 50)] + again)
    assert set(windows(tmp_path).values()) == {0.3}


@pytest.mark.parametrize(
    "line",
    ["", "{", "[]", '{"step": "x", "seconds": 1}', '{"step": 1, "seconds": NaN}',
     '{"step": 1e400, "seconds": 1}', '{"step": true, "seconds": 1}', "\x00" * 50],
)  # fmt: skip
def test_a_junk_line_among_the_steps_costs_only_itself(tmp_path: Path, line: str) -> None:
    good = [json.dumps({"step": n, "seconds": 0.5, "loss": None}) for n in range(1, 41)]
    text = "\n".join([*good[:20], line, *good[20:]]) + "\n" + '{"step": 41, "sec'
    (tmp_path / "steps.ndjson").write_text(text)
    assert set(windows(tmp_path).values()) == {0.5}
    assert windows(tmp_path, "nonfinite")["last"] == 3
    assert windows(tmp_path, "loss") == {}


def test_steps_that_ended_while_we_looked_are_not_the_jobs_trouble(tmp_path: Path) -> None:
    """The look itself slows a small machine; what it does to the job is no slow-down."""
    now = time.time()
    rows = [{"step": n, "seconds": 0.2, "at": now - 60 + n / 5} for n in range(1, 200)]
    rows += [{"step": n, "seconds": 0.9, "at": now + 1} for n in range(200, 210)]
    (tmp_path / "steps.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert set(windows(tmp_path).values()) == {0.2}


def test_a_passing_load_that_slows_some_steps_is_no_slower_window(tmp_path: Path) -> None:
    steps(tmp_path, [(n, 0.5 if n % 3 else 0.2) for n in range(1, 150)])
    assert set(windows(tmp_path).values()) == {0.2}


def test_the_mean_counts_long_steps_and_the_trimmed_one_leaves_out_a_twentieth(
    tmp_path: Path,
) -> None:
    """One pause of 25 steps shows in the first alone; every third long step shows in both."""
    steps(tmp_path, [(n, 9.0 if n == 20 else 0.2) for n in range(1, 150)])
    assert windows(tmp_path, "mean_s")["past:0"] == pytest.approx(0.2 + 8.8 / 25)
    assert max(windows(tmp_path, "trimmed_mean_s").values()) == pytest.approx(0.2)
    steps(tmp_path, [(n, 0.2 if n % 3 else 1.4) for n in range(1, 150)])
    assert windows(tmp_path, "trimmed_mean_s")["past:0"] > 0.4


def proc_entry(folder: Path, pid: int, ticks: int, cgroup: str, **environment: str) -> None:
    """A process as /proc shows it."""
    entry = folder / str(pid)
    entry.mkdir()
    (entry / "cgroup").write_text(f"0::/kubepods.slice/{cgroup}\n")
    fields = ["S", *("0" for _ in range(18)), str(ticks), "0"]
    (entry / "stat").write_text(f"{pid} (python (x)) {' '.join(fields)}\n")
    rows = [f"{key}={value}".encode() for key, value in environment.items()]
    (entry / "environ").write_bytes(b"\0".join(rows))


@pytest.mark.parametrize(
    ("container", "rank", "alone", "pid"),
    [
        ("0a1b", 8, False, 12),
        ("0a1b", 9, False, 13),
        ("0a1b", 7, False, None),
        ("0a1b", 7, True, 11),
        ("77aa-11bb", 0, True, 21),
        ("ffff", 0, True, None),
    ],
)
def test_a_rank_of_a_container_is_the_oldest_process_that_was_told_to_be_it(
    tmp_path: Path, container: str, rank: int, alone: bool, pid: int | None
) -> None:
    """Its loader workers inherit RANK, a lone rank need not be told."""
    mine = "kubepods-pod77aa_11bb.slice/cri-containerd-0a1b.scope"
    proc_entry(tmp_path, 11, 100, mine)
    proc_entry(tmp_path, 14, 400, mine, RANK="8")
    proc_entry(tmp_path, 12, 200, mine, RANK="8", LOCAL_RANK="0")
    proc_entry(tmp_path, 13, 300, mine, RANK="9")
    proc_entry(tmp_path, 21, 50, "kubepods-pod77aa_11bb.slice/cri-containerd-9999.scope")
    (tmp_path / "self").mkdir()
    found = runpy.run_path("checks/job/ranks/probe.py")["process_of_rank"](
        container, rank, alone, str(tmp_path)
    )
    assert (found or {}).get("pid") == pid
