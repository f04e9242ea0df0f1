"""A run's process may read its program before there is a run; it never runs one nobody gave it."""

import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from brctl.engine.runs import process
from brctl.engine.runs.remediate import spawn
from brctl.journal.store import is_running, new_run
from brctl.library.programs import preloaded as preloaded_module
from brctl.library.programs.preloaded import PRELOADED, preloading
from brctl.model.exit_codes import ExitCode
from tests.timeouts import TIMEOUT_S

# In the place of the program of a run: says what it was given, and holds that until told to end.
PROGRAM = """\
import os, sys, time
from brctl.library.programs.preloaded import PRELOADED, given_run
folder = sys.argv[1]
if sys.argv[2] != PRELOADED:
    given, how = sys.argv[2:], "started"
else:
    given, how = given_run(int(sys.argv[3])), "preloaded"
print(how, *(given or ["nothing"]), flush=True)
open(os.path.join(folder, how if given else "nothing"), "w").close()
while given and not os.path.exists(os.path.join(folder, "end")):
    time.sleep(0.02)
"""


def program(folder: Path, text: str = PROGRAM) -> tuple[str, ...]:
    (folder / "program.py").write_text(text)
    return (sys.executable, str(folder / "program.py"), str(folder))


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


async def test_a_run_is_given_to_the_process_that_waits_for_it(tmp_path: Path) -> None:
    """It holds the run's lock and writes its log, and no second process is started."""
    run_dir, words = new_run(tmp_path), program(tmp_path)
    (run_dir / "stdout").mkdir()
    with preloading(words) as preloaded:
        await spawn(run_dir, words, preloaded)
    assert is_running(run_dir)
    until((tmp_path / "preloaded").exists)
    log = (run_dir / "stdout" / "run.log").read_text()
    assert log.startswith(f"preloaded {run_dir} ")
    (tmp_path / "end").touch()
    until(lambda: not is_running(run_dir))
    assert not (tmp_path / "started").exists()


async def test_a_run_starts_anew_where_the_process_died(tmp_path: Path) -> None:
    """Whatever it died of: the run is started as if nothing had been read before."""
    run_dir, words = new_run(tmp_path), program(tmp_path)
    (run_dir / "stdout").mkdir()
    with preloading((sys.executable, "-c", "raise SystemExit(1)")) as preloaded:
        assert preloaded is not None
        await spawn(run_dir, words, preloaded)
    until((tmp_path / "started").exists)
    assert is_running(run_dir)
    (tmp_path / "end").touch()
    until(lambda: not is_running(run_dir))


async def test_a_process_that_was_given_up_does_not_take_the_run_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads what it was sent while the run's second process is at work."""
    monkeypatch.setattr(preloaded_module, "TAKES_S", 0.05)
    slow = "while not os.path.exists(os.path.join(folder, 'read')): time.sleep(0.02)"
    text = PROGRAM.replace("else:\n    given", f"else:\n    {slow}\n    given")
    run_dir, words = new_run(tmp_path), program(tmp_path, text)
    (run_dir / "stdout").mkdir()
    with preloading(words) as preloaded:
        await spawn(run_dir, words, preloaded)
        until((tmp_path / "started").exists)
        (tmp_path / "read").touch()
        until(lambda: (tmp_path / "nothing").exists() or (tmp_path / "preloaded").exists())
    (tmp_path / "end").touch()
    until(lambda: not is_running(run_dir))
    assert not (tmp_path / "preloaded").exists()


def test_it_ends_where_no_run_comes(tmp_path: Path) -> None:
    """The plan was refused, or whoever planned died: nothing is left behind."""
    with preloading(program(tmp_path)) as preloaded:
        assert preloaded is not None
    until((tmp_path / "nothing").exists)


def test_nothing_is_started_that_nobody_wants() -> None:
    """A dry run, a command at which a person is asked."""
    with preloading(("/bin/false",), wanted=False) as preloaded:
        assert preloaded is None


def test_the_program_of_a_run_carries_nothing_out_where_no_run_comes() -> None:
    """It has read all of itself by then, and leaves with success."""
    ours, theirs = socket.socketpair()
    ours.close()
    assert process.main([PRELOADED, str(theirs.detach())]) == ExitCode.OK


@pytest.mark.parametrize("count", [0, 1])
def test_half_a_run_is_none(count: int) -> None:
    """A path without the lock and the log is not carried out, and the giver is told nothing."""
    ours, theirs = socket.socketpair()
    with ours, open(os.devnull) as file:
        socket.send_fds(ours, [b"/nowhere"], [file.fileno()] * count)
        assert process.main([PRELOADED, str(theirs.detach())]) == ExitCode.OK
        assert ours.recv(1) == b""
