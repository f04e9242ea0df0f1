"""Faults reach the rank they mean, live, and nobody else."""

import json
from pathlib import Path

import pytest

from brctl.training.faults import RATE_FACTOR, Faults


def rank_on(path: Path, local_rank: int = 0) -> Faults:
    return Faults.from_environment({"BRCTL_LAB_FAULTS": str(path), "LOCAL_RANK": str(local_rank)})


def test_outside_the_lab_there_are_no_faults() -> None:
    """Without the variable every strike does nothing."""
    faults = Faults.from_environment({})
    faults.refresh()
    faults.strike_forward()
    faults.strike_before_all_reduce()
    assert not faults.poisons_loss(1)
    assert not faults.breaks_batch()


def test_a_change_is_seen_at_the_next_step(tmp_path: Path) -> None:
    """The file is read again when it changed, and only then matters."""
    path = tmp_path / "faults.json"
    path.write_text("{}")
    faults = rank_on(path)
    faults.refresh()
    assert not faults.poisons_loss(1)
    path.write_text('{"nan": true}')
    assert not faults.poisons_loss(1)
    faults.refresh()
    assert faults.poisons_loss(1)


def test_only_the_rank_of_the_broken_gpu_is_struck(tmp_path: Path) -> None:
    """Its neighbours on the same node go on."""
    path = tmp_path / "faults.json"
    path.write_text('{"local_rank": 1, "cuda_error": "uncorrectable ECC error encountered"}')
    healthy, broken = rank_on(path, 0), rank_on(path, 1)
    for faults in (healthy, broken):
        faults.refresh()
    healthy.strike_forward()
    with pytest.raises(RuntimeError, match="CUDA error: uncorrectable ECC error encountered"):
        broken.strike_forward()


def test_a_crash_strikes_once(tmp_path: Path) -> None:
    """After a restart the same rank on the same node gets past it; other faults stay."""
    path = tmp_path / "faults.json"
    path.write_text('{"crash": true, "nan": true}')
    faults = rank_on(path)
    faults.refresh()
    assert faults.breaks_batch()
    assert json.loads(path.read_text()) == {"nan": True}


def test_junk_changes_nothing(tmp_path: Path) -> None:
    """A torn or foreign file leaves the faults as they were."""
    path = tmp_path / "faults.json"
    path.write_text('{"nan": true}')
    faults = rank_on(path)
    faults.refresh()
    path.write_text("{")
    faults.refresh()
    assert faults.poisons_loss(1)


def test_what_code_and_data_do_strikes_every_rank_in_one_step(tmp_path: Path) -> None:
    """Which node a rank is on does not matter; whose batch it is does."""
    path = tmp_path / "faults.json"
    path.write_text('{"job": {"nan_from": 8, "bad_batch": [6, 2], "jump_at": 7}}')
    for local_rank in (0, 3):
        faults = rank_on(path, local_rank)
        faults.refresh()
        assert [faults.poisons_loss(step) for step in (7, 8, 9)] == [False, True, True]
        assert [faults.rate_factor(step) for step in (6, 7, 8)] == [1.0, RATE_FACTOR, 1.0]
        assert faults.masks_labels(6, 2)
        assert not faults.masks_labels(6, 1)
        assert not faults.masks_labels(7, 2)
