"""Two machines with one state directory act one at a time: other host names, other networks.

Each controller is a process in namespaces of its own; only the file system is shared.
"""

import ctypes
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brctl.engine.runs.read_run import read_run
from brctl.journal.locks import Leases
from brctl.journal.store import is_running, owning
from brctl.model.errors import LockedError
from tests.engine.runs.test_claims import cordoned, planned, refusal
from tests.fakes import run_fake_world
from tests.fakes.run_context import NOON

CLONE_NEWUTS, CLONE_NEWNET = 0x04000000, 0x40000000
pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make namespaces"),
]


def on_machine(name: str, work: Callable[[], int]) -> int:
    """The process id of a controller on a machine of this name, without a network."""
    pid = os.fork()
    if pid == 0:
        code = 98
        try:
            if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUTS | CLONE_NEWNET) == 0:
                socket.sethostname(name)
                code = work()
        finally:
            os._exit(code)
    return pid


def ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def carrying_out(run_dir: Path, ready: int) -> Callable[[], int]:
    """A run that begins when the pipe is closed."""

    def work() -> int:
        log = os.open(run_dir / "stdout" / "run.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.read(ready, 1)
        return run_fake_world.main(run_dir)

    return work


@contextmanager
def holding(run_dir: Path) -> Iterator[int]:
    """Another machine's controller that owns a run and its lease, and does nothing."""
    held, holds = os.pipe()

    def work() -> int:
        with owning(run_dir):
            Leases(run_dir.parents[1]).acquire(["node:n1"], run_dir.name, NOON)
            os.write(holds, b"x")
            signal.pause()
        return 0

    pid = on_machine("far", work)
    try:
        assert os.read(held, 1) == b"x"
        yield pid
    finally:
        os.close(held)
        os.close(holds)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_two_machines_keep_a_limit_of_one_together(tmp_path: Path) -> None:
    """Each plan was allowed alone; the claim of one is on disk before the other may ask."""
    run_dirs = planned(tmp_path, "n1", "n2", "n4")
    ready, go = os.pipe()
    os.set_inheritable(ready, True)
    pids = []
    for number, run_dir in enumerate(run_dirs):

        def work(run_dir: Path = run_dir) -> int:
            os.close(go)
            return carrying_out(run_dir, ready)()

        pids.append(on_machine(f"controller-{number}", work))
    os.close(go)
    os.close(ready)
    codes = [ended(pid) for pid in pids]
    assert sorted(codes) == [0, 5, 5]
    winner = run_dirs[codes.index(0)]
    assert cordoned(tmp_path) == set(read_run(winner).nodes)
    for run_dir, code in zip(run_dirs, codes, strict=True):
        if code:
            assert f"{read_run(winner).nodes[0]} by " in refusal(run_dir)


def test_a_run_of_another_machine_is_not_taken_over_while_it_lives(tmp_path: Path) -> None:
    """Its lock says so, not a process id or a host name; when it is killed, both are free."""
    (run_dir,) = planned(tmp_path, "n1")
    state_dir = tmp_path / "state"
    with holding(run_dir) as pid:
        assert is_running(run_dir)
        with pytest.raises(LockedError), owning(run_dir):
            pytest.fail("two own it")
        with pytest.raises(LockedError, match=f"node:n1 is held by {run_dir.name}"):
            Leases(state_dir).acquire(["node:n1"], "R-0099", NOON)
        assert pid > 0
    assert not is_running(run_dir)
    Leases(state_dir).acquire(["node:n1"], "R-0099", NOON)
