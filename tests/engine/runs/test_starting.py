"""A run is held for its process until that process owns it, however long it takes to load."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from brctl.engine.runs.remediate import spawn
from brctl.journal.store import is_running, owning, starting
from brctl.model.errors import LockedError
from tests.timeouts import TIMEOUT_S

SLOW_TO_LOAD = ("/bin/sh", "-c", 'read line < "$0/go"')
"""Waits for a line before it would own the run in its argument, and ends instead."""


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / "stdout").mkdir()
    os.mkfifo(tmp_path / "go")
    return tmp_path


def let_go(run_dir: Path) -> None:
    (run_dir / "go").write_text("now\n")
    deadline = time.monotonic() + TIMEOUT_S
    while is_running(run_dir):
        assert time.monotonic() < deadline, "its process has not ended"
        time.sleep(0.01)


def test_a_process_that_still_loads_its_code_holds_the_run(run_dir: Path) -> None:
    """Nobody calls it lost or starts another; once the process dies, the run is free."""
    asyncio.run(spawn(run_dir, SLOW_TO_LOAD))
    try:
        assert is_running(run_dir)
        with pytest.raises(LockedError):
            asyncio.run(spawn(run_dir, SLOW_TO_LOAD))
    finally:
        let_go(run_dir)
    asyncio.run(spawn(run_dir, ("/bin/true",)))


def test_its_owner_needs_no_starter(run_dir: Path) -> None:
    with starting(run_dir):
        assert is_running(run_dir)
        with owning(run_dir):
            assert is_running(run_dir)
    assert not is_running(run_dir)
