"""Who changes the pool at the same moment as others loses nothing, and undoes nothing of theirs."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.standby.pool import Pool, Standby
from brctl.engine.standby.pool_file import change_pool, load_pool, save_pool
from brctl.journal import locks
from brctl.journal.locks import exclusive
from brctl.model.errors import UnavailableError
from tests.fakes.site_files import local_config, write_site
from tests.timeouts import TIMEOUT_S

CONFIG = local_config()
INVENTORY = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes:
  s1: {address: 127.0.0.1, role: standby, python: FOLDER/python}
  s2: {address: 127.0.0.1, role: standby}
"""
SLOW_PYTHON = "#!/bin/sh\necho loading > FOLDER/began\ncat FOLDER/go\n"
PROCESSES, CHANGES = 6, 15


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "brctl", *words, "--config", "config.yaml", "--no-input"]
    return subprocess.Popen(
        command, cwd=folder, env={**os.environ, "HOME": str(folder)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_a_removal_during_a_warm_up_stands_and_so_does_the_warm_up(tmp_path: Path) -> None:
    """The warm-up has read the pool and waits for its node while the other command ends."""
    write_site(tmp_path, CONFIG, INVENTORY)
    (tmp_path / "python").write_text(SLOW_PYTHON.replace("FOLDER", str(tmp_path)))
    (tmp_path / "python").chmod(0o700)
    for name in ("began", "go"):
        os.mkfifo(tmp_path / name)
    warm = start(tmp_path, "standby", "warm", "s1")
    assert (tmp_path / "began").read_text() == "loading\n"
    remove = start(tmp_path, "standby", "remove", "s2")
    removed = remove.communicate(timeout=TIMEOUT_S)
    (tmp_path / "go").write_text("")
    warmed = warm.communicate(timeout=TIMEOUT_S)
    assert (remove.returncode, warm.returncode) == (0, 0), (removed, warmed)
    pool = load_pool(tmp_path / "state", "here")
    assert pool.removed == ("s2",)
    assert pool.of("s1").warmed_at


def test_many_processes_lose_no_change(tmp_path: Path) -> None:
    """Each reads what the one before wrote."""
    save_pool(tmp_path, "here", Pool())
    ready, go = os.pipe()
    pids = [_fork(tmp_path, number, ready, go) for number in range(PROCESSES)]
    os.close(go)
    os.close(ready)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * PROCESSES
    assert len(load_pool(tmp_path, "here").known) == PROCESSES * CHANGES


def _fork(folder: Path, number: int, ready: int, go: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.close(go)
        os.read(ready, 1)
        for change in range(CHANGES):
            row = Standby(f"n{number}-{change}")
            change_pool(folder, "here", lambda pool, row=row: pool.with_known([row]))  # type: ignore[misc]
        status = 0
    finally:
        os._exit(status)


def test_what_each_did_to_one_node_is_kept_together() -> None:
    """A test says how the node is, a warm-up how fast; what waits there comes from one of them."""
    before = Pool().with_known([Standby("s1", parked_for="a", parked_at="09:00", lease_s=60.0)])
    row = before.of("s1")
    tested = before.with_known([replace(row, health="ok", tested_at="10:00", parked_at="10:00")])
    ended = before.with_known([replace(row.unparked(), warmed_at="10:01")])
    both = ended.with_changes(before, tested).of("s1")
    assert (both.health, both.warmed_at) == ("ok", "10:01")
    assert (both.parked_for, both.parked_at, both.lease_s) == ("a", "10:00", 60.0)


def test_who_joins_and_who_leaves_are_kept_together() -> None:
    before = Pool(added=("n1",), removed=("s1",))
    theirs = Pool(added=("n1", "n2"), removed=("s1", "s2"))
    ours = Pool(added=("s1",), removed=("n1",))
    both = theirs.with_changes(before, ours)
    assert both.added == ("n2", "s1")
    assert both.removed == ("s2", "n1")


def test_a_lock_that_another_process_keeps_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "LOCK_TRIES", 2)
    path = tmp_path / "locks" / "here.standbys.lock"
    with (
        exclusive(path, "this test"),
        pytest.raises(UnavailableError, match=r"here\.standbys\.lock: held .* standbys"),
    ):
        change_pool(tmp_path, "here", lambda pool: pool)
