"""Every rank's ledger: a line a step, bounded, and never a reason to stop."""

import json
from pathlib import Path

import pytest

from brctl.training import ledger
from brctl.training.ledger import StepLedger
from brctl.training.progress import Progress
from tests.checks.probes import read


def finish(progress: Progress, step: int, cost: float = 3.0) -> None:
    for phase in ("load", "forward", "backward", "all_reduce"):
        progress.enter(phase, step)
    progress.finish_step(
        step, loss=1.0, grad_norm=1.0, seconds=0.5, wait_seconds=0.2, cost=cost,
        batch={"position": step, "digest": "ab"},
    )  # fmt: skip


def test_the_check_reads_what_a_rank_wrote_of_its_newest_steps(tmp_path: Path) -> None:
    """After a restart steps begin again below: only those in a row count."""
    progress = Progress(tmp_path, 3, "n4")
    for step in (7, 8, 9, 5, 6):
        finish(progress, step, cost=float(step))
    (tmp_path / "rank-00003.log").write_text("")
    places = {"log_dir": str(tmp_path), "progress_dir": str(tmp_path)}
    found = json.loads(str(read("job.ranks", {"ranks": [3], **places}).values[
        "job.rank.ledger", "rank:3"]))  # fmt: skip
    assert (found["first"], found["cost"], found["wait"]) == (5, [5.0, 6.0], [0.2, 0.2])
    assert len(found["load"]) == len(found["compute"]) == 2


def test_a_series_with_a_hole_is_left_out_and_a_long_one_fits(tmp_path: Path) -> None:
    rows = [{"step": n, "load": 0.123456, "compute": 1.23456, "wait": 0.2345678, "cost": 1.2e8}
            for n in range(300)]  # fmt: skip
    rows[250].pop("cost")
    (tmp_path / "ledger-00003.ndjson").write_text("".join(json.dumps(r) + "\n" for r in rows))
    (tmp_path / "rank-00003.json").write_text("{}")
    (tmp_path / "rank-00003.log").write_text("")
    places = {"log_dir": str(tmp_path), "progress_dir": str(tmp_path)}
    text = str(read("job.ranks", {"ranks": [3], **places}).values["job.rank.ledger", "rank:3"])
    found = json.loads(text)
    assert len(text) <= 4096
    assert "cost" not in found
    assert found["first"] + len(found["load"]) == 300
    assert len(found["load"]) >= 50


def test_two_files_hold_the_newest_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "LIMIT_BYTES", 200)
    book = StepLedger(tmp_path, 3)
    for step in range(100):
        book.append({"step": step, "cost": None})
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == ["ledger-00003.ndjson", "ledger-00003.old.ndjson"]
    assert sum(path.stat().st_size for path in files) < 500
    rows = [row for path in files[::-1] for row in path.read_text().splitlines()]
    steps = [json.loads(row)["step"] for row in rows]
    assert steps == sorted(steps)
    assert steps[-1] == 99
