"""Writes that a training script waits for only so long."""

import os
import subprocess
import sys
import threading
from functools import partial

import pytest

from brctl.training.progress import FileWork
from tests.timeouts import TIMEOUT_S


def test_a_file_system_that_does_not_answer_stops_nobody_and_is_said_once() -> None:
    """What comes meanwhile is left out; when it answers again, writes go on."""
    answers, done = threading.Event(), list[str]()
    files = FileWork(patience_s=0.01)

    def stuck() -> None:
        answers.wait()
        done.append("stuck")

    with pytest.raises(TimeoutError, match="does not answer for"):
        files.do(stuck)
    files.do(lambda: done.append("left out"))
    assert done == []
    files._patience_s = TIMEOUT_S
    answers.set()
    assert files._stuck is not None
    files._stuck.ended.wait()
    files.do(lambda: done.append("again"))
    assert done == ["stuck", "again"]


def test_what_was_done_is_on_disk_when_the_script_goes_on() -> None:
    """And what it said is heard."""
    files, done = FileWork(), list[int]()
    for number in range(50):
        files.do(partial(done.append, number))
        assert done[-1] == number

    def refuse() -> None:
        raise PermissionError(13, "Permission denied")

    with pytest.raises(PermissionError):
        files.do(refuse)


def test_a_fork_writes_with_a_thread_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The object is there and the thread is not."""
    files, threads = FileWork(), set[int]()
    note = lambda: threads.add(threading.get_ident())  # noqa: E731  # shorter than a function
    files.do(note)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    files.do(note)
    assert len(threads) == 2
    assert threading.get_ident() not in threads


def test_what_is_no_matter_of_files_is_raised_and_ends_no_thread() -> None:
    files, done = FileWork(patience_s=TIMEOUT_S), list[str]()

    def refuse() -> None:
        raise TypeError("Object of type int64 is not JSON serializable")

    for _ in range(2):
        with pytest.raises(TypeError, match="int64"):
            files.do(refuse)
    files.do(lambda: done.append("after it"))
    assert done == ["after it"]


def test_an_exit_handler_writes_as_well() -> None:
    """One that was registered before the first write runs after weakref's own."""
    script = (
        "import atexit\n"
        "from brctl.training.progress import FileWork\n"
        f"files = FileWork({TIMEOUT_S / 2})\n"
        "atexit.register(lambda: files.do(lambda: print('written')))\n"
        "files.do(lambda: None)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    assert (ended.stdout, ended.stderr) == ("written\n", "")


def test_its_thread_ends_with_it() -> None:
    files, threads = FileWork(), list[threading.Thread]()
    files.do(lambda: threads.append(threading.current_thread()))
    del files
    threads[0].join(TIMEOUT_S)
    assert not threads[0].is_alive()


def test_where_no_thread_is_to_be_had_it_is_written_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    done: list[int] = []
    FileWork().do(lambda: done.append(threading.get_ident()))
    assert done == [threading.get_ident()]
