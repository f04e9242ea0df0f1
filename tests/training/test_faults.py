"""Faults reach the rank they mean, live, and nobody else."""

import json
from pathlib import Path

import pytest

from brctl.training.faults import Faults


def rank_on(path: Path, local_rank: int = 0) -> Faults:
    return Faults.from_environment({"BRCTL_LAB_FAULTS": str(path), "LOCAL_RANK": str(local_rank)})


def test_outside_the_lab_there_are_no_faults() -> None:
    """Without the variable every strike does nothing."""
    faults = Faults.from_environment({})
    faults.refresh()
    faults.strike_forward()
    faults.strike_before_all_reduce()
    assert not faults.poisons_loss()
    assert not faults.breaks_batch()


def test_a_change_is_seen_at_the_next_step(tmp_path: Path) -> None:
    """The file is read again when it changed, and only then matters."""
    path = tmp_path / "faults.json"
    path.write_text("{}")
    faults = rank_on(path)
    faults.refresh()
    assert not faults.poisons_loss()
    path.write_text('{"nan": true}')
    assert not faults.poisons_loss()
    faults.refresh()
    assert faults.poisons_loss()


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
    assert faults.poisons_loss()
