"""The ledger of code changes: private, chained, safe to repeat, refused when damaged."""

import stat
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

import pytest

from brctl.journal.code_ledger import CodeLedger
from brctl.model.errors import ConfigError, UsageError
from brctl.model.jobs.code import ChangeState, CodeStart

NOON = datetime(2026, 7, 5, 12, 0, tzinfo=UTC)


def request_change(ledger: CodeLedger, version: str, digest: str = "") -> str:
    return ledger.record(
        version, digest or f"d-{version}", urgent=False, why="faster", by="ann", at=NOON
    ).id


def test_who_why_when_and_by_which_run_is_on_disk_for_its_owner_only(tmp_path: Path) -> None:
    ledger = CodeLedger(tmp_path / "demo")
    change_id = request_change(ledger, "r2")
    ledger.apply(change_id, "R-0007", NOON)
    ledger.started(CodeStart("R-0007", "r2", change_id, "d-r2", "/ckpt/step-00000038", NOON))
    record = CodeLedger(tmp_path / "demo").read()
    (change,) = record.changes
    assert (change.by, change.why, change.recorded_at) == ("ann", "faster", NOON)
    assert (change.state, change.state_by) == (ChangeState.APPLIED, "R-0007")
    start = record.start_of(change)
    assert start is not None
    assert start.checkpoint == "/ckpt/step-00000038"
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "demo").iterdir()}
    assert modes == {0o600}


def test_every_call_may_be_repeated(tmp_path: Path) -> None:
    """A run that died after writing writes nothing new when it goes on."""
    ledger = CodeLedger(tmp_path / "demo")
    change_id = request_change(ledger, "r2")
    start = CodeStart("R-1", "r2", change_id, "d-r2", "", NOON)
    for _ in range(2):
        ledger.apply(change_id, "R-1", NOON)
        ledger.started(start)
    for _ in range(2):
        ledger.roll_back(change_id, "R-2", NOON)
    assert ledger.undo_switches("R-2", NOON)
    assert not ledger.undo_switches("R-2", NOON)
    lines = (tmp_path / "demo" / "events.ndjson").read_text().splitlines()
    assert len(lines) == 5


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    """Applying what does not wait, rolling back what is not on, the same code again."""
    ledger = CodeLedger(tmp_path / "demo")
    change_id = request_change(ledger, "r2")
    with pytest.raises(UsageError, match="r2 waits already"):
        request_change(ledger, "r2")
    with pytest.raises(UsageError, match="C-0001 is not what the job runs: it is pending"):
        ledger.roll_back(change_id, "R-1", NOON)
    ledger.apply(change_id, "R-1", NOON)
    with pytest.raises(UsageError, match="C-0001 does not wait: it is applied by R-1"):
        ledger.apply(change_id, "R-2", NOON)
    with pytest.raises(UsageError, match="r2 is what it runs"):
        request_change(ledger, "r2")


def test_a_release_that_ran_never_gets_other_content(tmp_path: Path) -> None:
    """Else a rollback to it would start what never ran."""
    ledger = CodeLedger(tmp_path / "demo")
    ledger.started(CodeStart("R-1", "r1", "", "d-r1", "", NOON))
    with pytest.raises(UsageError, match="r1 had other content when R-1 started it"):
        request_change(ledger, "r1", "edited")


def test_an_altered_ledger_is_an_error_and_a_torn_line_is_not(tmp_path: Path) -> None:
    """A line nobody was told about may be missing; one that was changed may not pass."""
    ledger = CodeLedger(tmp_path / "demo")
    request_change(ledger, "r2")
    request_change(ledger, "r3")
    path = tmp_path / "demo" / "events.ndjson"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"type":"code.app')
    assert [c.version for c in ledger.read().changes] == ["r2", "r3"]
    assert request_change(ledger, "r4") == "C-0003"
    path.write_bytes(whole.replace(b'"by":"ann"', b'"by":"bob"', 1))
    with pytest.raises(ConfigError, match="does not follow"):
        ledger.read()
    with pytest.raises(ConfigError):
        request_change(ledger, "r5")


def _record(folder: Path, number: int) -> None:
    request_change(CodeLedger(folder), f"r{number}")


def test_two_people_at_once_get_two_numbers(tmp_path: Path) -> None:
    workers = [
        get_context("fork").Process(target=_record, args=(tmp_path / "demo", n)) for n in range(6)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    record = CodeLedger(tmp_path / "demo").read()
    assert [c.id for c in record.changes] == [f"C-{n:04d}" for n in range(1, 7)]
    assert [c.state for c in record.changes[:-1]] == [ChangeState.SUPERSEDED] * 5
