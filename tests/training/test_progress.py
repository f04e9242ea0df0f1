"""Progress files: what a rank says about itself, readable at any moment."""

import json
import math
from pathlib import Path

import pytest

from brctl.training.progress import Progress


def started(directory: Path, rank: int = 3) -> Progress:
    return Progress.from_environment(
        {"BRCTL_PROGRESS_DIR": str(directory), "RANK": str(rank), "BRCTL_NODE": "n4"}
    )


def read(directory: Path, rank: int = 3) -> dict[str, object]:
    document: dict[str, object] = json.loads((directory / f"rank-{rank:05d}.json").read_text())
    return document


def test_a_phase_change_is_on_disk_at_once(tmp_path: Path) -> None:
    """Who hangs where is read from the phase and its moment; what was not measured is null."""
    started(tmp_path).enter("all_reduce", 17)
    said = read(tmp_path)
    assert (said["rank"], said["node"], said["step"]) == (3, "n4", 17)
    assert said["phase"] == "all_reduce"
    assert said["phase_since"] == said["at"]
    assert said["loss"] is None
    assert said["loss_finite"] is None
    assert said["wait_seconds"] is None


def test_the_first_nan_is_remembered(tmp_path: Path) -> None:
    """Once a NaN has spread everybody has one; the step of a rank's first tells who began."""
    progress = started(tmp_path)
    for step, loss in ((1, 4.2), (2, math.nan), (3, math.inf)):
        progress.saw_loss(step, loss)
    progress.enter("backward", 3)
    said = read(tmp_path)
    assert said["loss"] is None
    assert said["loss_finite"] is False
    assert said["first_nonfinite_step"] == 2


def test_rank_zero_keeps_the_steps_and_they_are_json(tmp_path: Path) -> None:
    """One line a step, and never a bare NaN, which is not JSON."""
    progress = started(tmp_path, rank=0)
    progress.finish_step(1, loss=4.25, grad_norm=0.5, seconds=0.1, wait_seconds=0.01)
    progress.finish_step(2, loss=math.nan, grad_norm=math.inf, seconds=0.1, wait_seconds=0.01)
    text = (tmp_path / "steps.ndjson").read_text()
    steps = [json.loads(line) for line in text.splitlines()]
    assert [step["step"] for step in steps] == [1, 2]
    assert steps[0]["loss"] == 4.25
    assert steps[1]["loss"] is None
    assert "NaN" not in text
    assert "Infinity" not in text


def test_other_ranks_write_no_steps(tmp_path: Path) -> None:
    """The losses of all ranks together are written once."""
    started(tmp_path).finish_step(1, loss=1.0, grad_norm=1.0, seconds=0.1, wait_seconds=None)
    assert not (tmp_path / "steps.ndjson").exists()


def test_a_full_disk_never_stops_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Progress that cannot be written is said once and otherwise ignored."""
    progress = started(tmp_path / "gone")
    progress.enter("forward", 1)
    progress.enter("backward", 1)
    assert capsys.readouterr().err.count("progress is not written") == 1


def test_without_brctl_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that uses the module runs unchanged where brctl did not start it."""
    monkeypatch.chdir(tmp_path)
    Progress.from_environment({}).enter("forward", 1)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_phase_is_a_mistake(tmp_path: Path) -> None:
    """The list of phases is closed, because brctl's rules speak about them."""
    with pytest.raises(ValueError, match="fwd"):
        started(tmp_path).enter("fwd", 1)
