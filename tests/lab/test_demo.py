"""`lab demo` interrupted: whenever Ctrl-C comes, nothing of the lab is left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from brctl.lab.cluster import leftovers, take_down
from brctl.lab.record import LabRecord, read_record
from brctl.lab.spec import LabPaths
from brctl.model.errors import ConfigError
from tests.timeouts import TIMEOUT_S


@pytest.mark.parametrize(
    ("delay_s", "number", "code"),
    [(0.05, signal.SIGINT, 130), (0.4, signal.SIGINT, 130), (1.5, signal.SIGTERM, 143)],
)
def test_an_interrupted_demo_leaves_nothing(
    tmp_path: Path, delay_s: float, number: signal.Signals, code: int
) -> None:
    """While the lab is built, right after, and while ranks start: a clean machine."""
    directory = tmp_path / "lab"
    demo = subprocess.Popen(
        [sys.executable, "-m", "brctl", "lab", "demo", "--nodes=2", "--isolation=none"],
        env={**os.environ, "BRCTL_LAB_DIR": str(directory)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        record = _wait_for_record(directory)
        time.sleep(delay_s)
        demo.send_signal(number)
        assert demo.wait(timeout=TIMEOUT_S) == code
        assert leftovers(record) == ()
        assert not directory.exists()
    finally:
        demo.kill()
        take_down(LabPaths(directory))


@pytest.mark.torch
@pytest.mark.system
def test_an_interrupt_during_the_fix_ends_the_run_too(tmp_path: Path) -> None:
    """A run is a process of its own and outlives its starter, but not the lab it works on."""
    directory = tmp_path / "lab"
    demo = subprocess.Popen(
        [sys.executable, "-m", "brctl", "lab", "demo", "--nodes=2", "--isolation=none"],
        env={**os.environ, "BRCTL_LAB_DIR": str(directory)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        record = _wait_for_record(directory)
        assert demo.stderr is not None
        _wait_for_line(demo.stderr, "verdict:")
        _wait_until(
            lambda: any(b"brctl.engine.runs.process" in _command(pid) for pid in leftovers(record))
        )
        demo.send_signal(signal.SIGINT)
        assert demo.wait(timeout=TIMEOUT_S) == 130
        assert leftovers(record) == ()
        assert not directory.exists()
    finally:
        demo.kill()
        demo.communicate()
        take_down(LabPaths(directory))


@pytest.mark.deep
@pytest.mark.torch
@pytest.mark.system
def test_a_watched_demo_brings_the_job_back_without_a_person(tmp_path: Path) -> None:
    """From the fault to a new step; nothing of the lab or its watcher is left."""
    directory = tmp_path / "lab"
    done = subprocess.run(
        [sys.executable, "-m", "brctl", "lab", "demo", "--watch", "--nodes=4", "--standbys=1"],
        env={**os.environ, "BRCTL_LAB_DIR": str(directory)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = [line.split("  ")[-1] for line in done.stdout.splitlines()[-8:]]
    assert (told[0], told[-1]) == ("fault", "new step")
    assert not directory.exists()


def _wait_until(happened: Callable[[], bool]) -> None:
    limit_s = time.monotonic() + TIMEOUT_S
    while not happened():
        assert time.monotonic() < limit_s
        time.sleep(0.02)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _wait_for_line(stream: Iterable[str], start: str) -> None:
    """Read until a line begins so; where none does, the failure shows what was read."""
    lines: list[str] = []
    for line in stream:
        if line.startswith(start):
            return
        lines.append(line)
    pytest.fail(f"no line begins with {start!r}:\n{''.join(lines)}")


def _wait_for_record(directory: Path) -> LabRecord:
    limit_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < limit_s:
        try:
            record = read_record(LabPaths(directory))
        except ConfigError:
            record = None
        if record is not None:
            return record
        time.sleep(0.002)
    raise AssertionError("the demo built no lab")
