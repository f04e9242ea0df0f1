"""Sweeps, fixes and playbooks killed at moments drawn by chance leave a state that holds together.

A few kills of each; `python -m tests.bench.kills` does hundreds.
"""

import asyncio
import os
from pathlib import Path

import pytest

from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run, read_runs
from brctl.engine.runs.remediate import create_run
from brctl.engine.runs.run_files import REQUEST, RunRequest
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.runs.result import RunState
from tests.bench.kills.runs import kill_runs
from tests.bench.kills.sweeps import kill_sweeps
from tests.fakes.run_context import FakeContext, fake_context
from tests.fakes.run_here import carry

SEED = 197


@pytest.mark.parametrize(("name", "kills"), [("fix", 6), ("play", 8)])
def test_a_run_killed_at_any_moment_is_listed_resumed_and_does_everything_once(
    name: str, kills: int, tmp_path: Path
) -> None:
    """From planning on: no half-made run is in the way, and no lease of the dead blocks anybody."""
    tally = kill_runs(name, tmp_path, kills, SEED)
    assert (tally.kills, tally.problems) == (kills, [])


def test_a_sweep_killed_at_any_moment_leaves_what_was_known(tmp_path: Path) -> None:
    """History and files are whole, and the next sweep is not held up."""
    tally = kill_sweeps(tmp_path, 6, SEED)
    assert (tally.kills, tally.problems) == (6, [])


def made(context: FakeContext) -> Path:
    """A run of `cordon` that was planned and made, and whose process was not started."""
    playbook = load_playbook(shipped_dir("playbooks") / "cordon.yaml")
    prepared = asyncio.run(prepare(context, playbook, None, {"nodes": "n1"}))
    return create_run(context, prepared, RunRequest("ann"))


def test_a_run_that_nobody_started_is_lost_and_can_be_resumed(tmp_path: Path) -> None:
    """Whoever made it died before its process: it was said to be starting for ever."""
    context = fake_context(tmp_path)
    run_dir = made(context)
    assert read_run(run_dir).state is RunState.STARTING
    os.utime(run_dir / REQUEST, (0, 0))
    assert read_run(run_dir).state is RunState.LOST
    assert carry(context, run_dir) == 0
    assert read_run(run_dir).state is RunState.OK


def test_the_folder_of_a_run_that_was_never_made_whole_is_no_run(tmp_path: Path) -> None:
    """Every list of runs named it as unreadable, for ever."""
    run_dir = made(fake_context(tmp_path))
    (run_dir / REQUEST).unlink()
    assert read_runs(tmp_path / "state") == ()
