"""Two controllers cannot act on one node, and a sleeper who lost its lease is fenced."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from brctl.journal import locks
from brctl.journal.locks import LEASE_S, Leases
from brctl.journal.store import owning
from brctl.model.errors import LockedError

NOW = datetime(2026, 7, 5, 12, tzinfo=UTC)
LATER = NOW + timedelta(seconds=LEASE_S + 1)


def test_the_second_run_is_told_who_holds_the_node(tmp_path: Path) -> None:
    """All keys or none: the free one is not taken either."""
    leases = Leases(tmp_path)
    leases.acquire(["node:n1"], "R-1", NOW)
    with pytest.raises(LockedError, match="node:n1 is held by R-1 until 2026-07-05 12:01:00Z"):
        leases.acquire(["node:n0", "node:n1"], "R-2", NOW)
    assert leases.held_by_others(["node:n0", "node:n1"], "R-2", NOW) == {"node:n1": "R-1"}
    leases.acquire(["node:n0"], "R-3", NOW)


def test_a_released_or_expired_lease_blocks_nobody(tmp_path: Path) -> None:
    """A dead controller holds a node for one lease and no longer."""
    leases = Leases(tmp_path)
    leases.release(leases.acquire(["job:a"], "R-1", NOW))
    leases.acquire(["job:a"], "R-2", NOW)
    leases.acquire(["job:a"], "R-3", LATER)


def test_a_run_that_slept_past_its_lease_is_fenced(tmp_path: Path) -> None:
    """It can neither renew nor go on, and its release takes nothing from the new holder."""
    leases = Leases(tmp_path)
    old = leases.acquire(["job:a"], "R-1", NOW)
    new = leases.acquire(["job:a"], "R-2", LATER)
    assert new.token > old.token
    with pytest.raises(LockedError, match="R-1 lost its lease on job:a: R-2 holds it now"):
        leases.verify(old)
    with pytest.raises(LockedError, match="R-1 lost its lease"):
        leases.renew(old, LATER)
    leases.release(old)
    leases.verify(new)


def test_a_renewed_lease_lasts(tmp_path: Path) -> None:
    """Renewing in time keeps others out."""
    leases = Leases(tmp_path)
    lease = leases.acquire(["job:a"], "R-1", NOW)
    leases.renew(lease, NOW + timedelta(seconds=LEASE_S / 2))
    with pytest.raises(LockedError):
        leases.acquire(["job:a"], "R-2", LATER)


def test_a_resumed_run_takes_its_own_lease_again(tmp_path: Path) -> None:
    """The new process of a run fences its own predecessor."""
    leases = Leases(tmp_path)
    first = leases.acquire(["job:a"], "R-1", NOW)
    leases.verify(leases.acquire(["job:a"], "R-1", NOW))
    with pytest.raises(LockedError):
        leases.verify(first)


@pytest.mark.parametrize("content", ["", '{"last_token": 3, "gra', "[]", '{"grants": {"a": 1}}'])
def test_a_truncated_lease_file_stops_nobody_and_fences_who_held_a_lease(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is set aside and said; the tokens that follow are higher than all before."""
    leases = Leases(tmp_path)
    old = leases.acquire(["job:a"], "R-1", NOW)
    (tmp_path / "locks" / "leases.json").write_text(content)
    new = leases.acquire(["job:a"], "R-2", NOW)
    assert new.token > old.token
    assert "set aside as leases.json.damaged-1" in caplog.text
    assert (tmp_path / "locks" / "leases.json.damaged-1").read_text() == content
    with pytest.raises(LockedError, match="R-1 lost its lease on job:a"):
        leases.verify(old)


YEAR_2099 = datetime(2099, 1, 1, tzinfo=UTC)


def a_run(folder: Path) -> Path:
    """The folder of R-1."""
    path = folder / "runs" / "R-1"
    path.mkdir(parents=True)
    return path


def test_the_lease_of_a_run_that_died_here_blocks_nobody(tmp_path: Path) -> None:
    """The kernel says that nobody owns the run; the date of its lease is not waited for."""
    leases, run_dir = Leases(tmp_path), a_run(tmp_path)
    with owning(run_dir):
        leases.acquire(["node:n1"], "R-1", NOW)
        with pytest.raises(LockedError, match="held by R-1"):
            leases.acquire(["node:n1"], "R-2", NOW)
    assert leases.held_by_others(["node:n1"], "R-2", NOW) == {}
    leases.acquire(["node:n1"], "R-2", NOW)


def test_a_lease_written_while_the_clock_was_wrong_does_not_last_until_its_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also from before a reboot, or from another machine: no lease runs for years."""
    leases, run_dir = Leases(tmp_path), a_run(tmp_path)
    monkeypatch.setattr(locks, "this_kernel", lambda: "another")
    with owning(run_dir):
        leases.acquire(["node:n1"], "R-1", YEAR_2099)
        monkeypatch.undo()
        with pytest.raises(LockedError, match="held by R-1"):
            leases.acquire(["node:n1"], "R-2", NOW)
    leases.acquire(["node:n1"], "R-2", NOW)


def test_of_a_run_on_another_machine_the_date_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock may be one that this machine cannot see."""
    leases = Leases(tmp_path)
    a_run(tmp_path)
    monkeypatch.setattr(locks, "this_kernel", lambda: "another")
    leases.acquire(["node:n1"], "R-1", NOW)
    monkeypatch.undo()
    with pytest.raises(LockedError, match="held by R-1"):
        leases.acquire(["node:n1"], "R-2", NOW)
    leases.acquire(["node:n1"], "R-2", LATER)
