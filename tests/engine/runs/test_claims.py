"""Runs at the same time keep the limit of one together: what one may take, the others count."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import create_run
from brctl.engine.runs.run_files import RunRequest
from brctl.journal import locks
from brctl.journal.locks import claiming
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.errors import UnavailableError
from brctl.model.runs.result import RunState
from tests.fakes import run_fake_world
from tests.fakes.run_context import fake_context

CORDON = load_playbook(shipped_dir("playbooks") / "cordon.yaml")
ALONE = ("n1", "n2", "n4", "s1", "s2")
"""Nodes that answer; of a fleet of six the built-in limit lets one be taken."""


def planned(folder: Path, *nodes: str) -> list[Path]:
    """A run for each node, none of which has begun: every plan was let through by the guards."""
    context = fake_context(folder)
    found = [asyncio.run(prepare(context, CORDON, None, {"nodes": node})) for node in nodes]
    return [create_run(context, each, RunRequest(by="oncall")) for each in found]


def run_together(run_dirs: Sequence[Path], **environ: str) -> list[int]:
    """The exit codes of real processes that all begin when the pipe between us is closed."""
    ready, go = os.pipe()
    pids = [_fork(run_dir, ready, go, environ) for run_dir in run_dirs]
    os.close(go)
    os.close(ready)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def _fork(run_dir: Path, ready: int, go: int, environ: dict[str, str]) -> int:
    pid = os.fork()
    if pid == 0:
        os.close(go)
        log = os.open(run_dir / "stdout" / "run.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ |= environ
        os.read(ready, 1)
        os._exit(run_fake_world.main(run_dir))
    return pid


def cordoned(folder: Path) -> set[str]:
    return set(fake_context(folder).world.read()["cordons"])


def refusal(run_dir: Path) -> str:
    run = read_run(run_dir)
    assert run.state is RunState.REFUSED
    return run.record.why


@pytest.mark.parametrize("attempt", range(3))
def test_runs_at_the_same_moment_keep_a_limit_of_one(attempt: int, tmp_path: Path) -> None:
    """Each of the plans was allowed alone; one run takes its node, the others name it."""
    run_dirs = planned(tmp_path, *ALONE)
    codes = run_together(run_dirs)
    assert sorted(codes) == [0, 5, 5, 5, 5]
    winner = run_dirs[codes.index(0)]
    assert cordoned(tmp_path) == set(read_run(winner).nodes)
    for run_dir, code in zip(run_dirs, codes, strict=True):
        if code:
            assert f"{read_run(winner).nodes[0]} by " in refusal(run_dir)


def test_a_run_that_dies_on_its_claim_holds_up_nobody_and_is_named(tmp_path: Path) -> None:
    """It died while it held the lock, before it touched its node: the next run goes on at once."""
    dead, alive = planned(tmp_path, "n1", "n2")
    assert run_together([dead], KILL_AFTER_LINE="2") == [-9]
    assert read_run(dead).record.claimed == ("n1",)
    assert run_together([alive]) == [0]
    assert cordoned(tmp_path) == {"n2"}
    actual = [str(row["says"]) for row in read_run(alive).guards if row["guard"] == "blast_radius"]
    assert all(
        f"{dead.name} died before it took n1, which does not count" in text for text in actual
    )
    assert actual


def test_a_dead_run_that_comes_back_finds_the_limit_used_up(tmp_path: Path) -> None:
    """Its claim was gone when another took it; it asks again and is refused."""
    dead, alive = planned(tmp_path, "n1", "n2")
    assert run_together([dead], KILL_AFTER_LINE="2") == [-9]
    assert run_together([alive]) == [0]
    assert run_together([dead]) == [5]
    assert "n2 by " in refusal(dead)
    assert cordoned(tmp_path) == {"n2"}


def test_what_a_dead_run_may_have_cordoned_counts_as_taken(tmp_path: Path) -> None:
    """It died after the intent: whether the node is out, nobody can tell."""
    dead, alive = planned(tmp_path, "n1", "n2")
    intent = 5
    assert run_together([dead], KILL_AFTER_LINE=str(intent)) == [-9]
    assert read_run(dead).events[intent].fields["step"] == "cordon"
    assert cordoned(tmp_path) == set()
    assert run_together([alive]) == [5]
    assert f"n1 by {dead.name}" in refusal(alive)


def test_a_run_that_hangs_on_the_lock_is_said_and_not_waited_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is named, so that a person finds the process."""
    monkeypatch.setattr(locks, "LOCK_TRIES", 3)
    refused = pytest.raises(UnavailableError, match=r"claims\.lock: held for")
    with claiming(tmp_path), refused, claiming(tmp_path):
        pytest.fail("two held it at once")
