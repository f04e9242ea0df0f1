"""Progress files: what a rank says about itself, readable at any moment."""

import json
import math
import pickle
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
    actual = read(tmp_path)
    assert (actual["rank"], actual["node"], actual["step"]) == (3, "n4", 17)
    assert actual["phase"] == "all_reduce"
    assert actual["phase_since"] == actual["at"]
    assert actual["loss"] is None
    assert actual["loss_finite"] is None
    assert actual["wait_seconds"] is None


def test_the_first_nan_is_remembered(tmp_path: Path) -> None:
    """Once a NaN has spread everybody has one; the step of a rank's first tells who began."""
    progress = started(tmp_path)
    for step, loss in ((1, 4.2), (2, math.nan), (3, math.inf)):
        progress.saw_loss(step, loss)
    progress.enter("backward", 3)
    actual = read(tmp_path)
    assert actual["loss"] is None
    assert actual["loss_finite"] is False
    assert actual["first_nonfinite_step"] == 2


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


def test_the_tokens_of_a_step_are_written_where_they_are_told(tmp_path: Path) -> None:
    progress = started(tmp_path, rank=0)
    progress.finish_step(1, loss=4.0, grad_norm=0.5, seconds=0.1, wait_seconds=0.0, tokens=4096)
    progress.finish_step(2, loss=4.0, grad_norm=0.5, seconds=0.1, wait_seconds=0.0)
    told, silent = map(json.loads, (tmp_path / "steps.ndjson").read_text().splitlines())
    assert told["tokens"] == 4096
    assert "tokens" not in silent


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


def test_the_medians_of_the_last_steps_outlive_one_odd_step(tmp_path: Path) -> None:
    """One step on a busy machine says little; what was not measured stays null."""
    progress = started(tmp_path)
    for step, seconds in enumerate((0.4, 0.4, 3.0, 0.4, 0.5), 1):
        progress.finish_step(
            step, loss=1.0, grad_norm=1.0, seconds=seconds, wait_seconds=seconds / 4
        )
    progress.enter("forward", 6)
    actual = read(tmp_path)
    assert (actual["recent_steps"], actual["recent_step_seconds"]) == (5, 0.4)
    assert actual["recent_wait_seconds"] == 0.1
    assert actual["recent_load_seconds"] is None


def test_how_long_a_phase_takes_is_known_from_the_last_time(tmp_path: Path) -> None:
    """An evaluation that took its time before is no hang; the start of the job is no batch."""
    progress = started(tmp_path)
    for phase, step in (("load", 0), ("load", 1), ("evaluation", 1), ("evaluation", 2)):
        progress.enter(phase, step)
    progress.enter("done", 2)
    longest = read(tmp_path)["longest_phases"]
    assert isinstance(longest, dict)
    assert set(longest) == {"load", "evaluation"}
    assert all(seconds >= 0 for seconds in longest.values())


def test_the_first_gradient_that_is_no_number_is_remembered(tmp_path: Path) -> None:
    """Noted before the reduction, it tells the rank that made the NaN from those that got it."""
    progress = started(tmp_path)
    for step, norm in ((1, 0.5), (2, math.inf), (3, math.nan)):
        progress.saw_gradient(step, norm)
    progress.enter("all_reduce", 3)
    actual = read(tmp_path)
    assert (actual["local_grad_norm"], actual["grad_finite"]) == (None, False)
    assert actual["first_nonfinite_grad_step"] == 2


def test_a_pickled_progress_writes_on(tmp_path: Path) -> None:
    """As a trainer that holds one is handed to a process of its own."""
    progress = started(tmp_path)
    progress.enter("forward", 1)
    copy = pickle.loads(pickle.dumps(progress))  # noqa: S301  our own
    copy.enter("backward", 2)
    assert (read(tmp_path)["phase"], read(tmp_path)["step"]) == ("backward", 2)


def test_a_cost_that_json_does_not_know_is_an_error_of_the_script(tmp_path: Path) -> None:
    """As numpy's numbers are; what is told later is written."""
    progress = started(tmp_path)
    with pytest.raises(TypeError, match="complex"):
        progress.finish_step(1, loss=1.0, grad_norm=1.0, seconds=1.0, wait_seconds=0.1,
                             cost=1j)  # type: ignore[arg-type]  # as a script may  # fmt: skip
    progress.enter("forward", 2)
    assert read(tmp_path)["step"] == 2
