"""A fleet's own past decides where its present cannot."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from brctl.evidence.baseline import assess_baseline, learn_baseline
from brctl.library.baselines import load_baseline, write_baseline
from brctl.model.errors import ConfigError
from brctl.model.evidence import Weight
from tests.evidence.test_peers import RATE, fleet

LEARNED = datetime(2026, 1, 10, 12, 30, tzinfo=UTC)
WELL = fleet(RATE, [650.0, 652.0, 648.0, 651.0])


def test_a_slow_gpu_differs_from_its_past() -> None:
    """With two nodes nobody is outvoted; the baseline says which of them is slow."""
    baseline = learn_baseline(WELL, LEARNED)
    slow, well = fleet(RATE, [320.0, 650.0])
    (against,) = assess_baseline(slow, baseline)
    (clear,) = assess_baseline(well, baseline)
    assert (against.weight, clear.weight) == (Weight.HINTS, Weight.CLEARS)
    assert "650.5 was normal (2026-01-10, driver not known)" in against.text


def test_two_readings_teach_nothing() -> None:
    """One of two may be the sick one."""
    assert learn_baseline(WELL[:2], LEARNED).entries == ()


def test_other_hardware_is_not_compared() -> None:
    """What was normal for one model says nothing of another."""
    baseline = learn_baseline(WELL, LEARNED, lambda node: "h100")
    assert list(assess_baseline(fleet(RATE, [310.0])[0], baseline, "a100")) == []


def test_a_baseline_survives_its_file(tmp_path: Path) -> None:
    """What was written is read back equal."""
    baseline = learn_baseline(WELL, LEARNED, lambda node: "h100")
    path = tmp_path / "baseline.yaml"
    write_baseline(path, baseline)
    assert load_baseline(path) == baseline
    path.write_text(path.read_text().replace("median:", "medium:"))
    with pytest.raises(ConfigError, match=r"baseline\.yaml:\d+: unknown key 'medium'"):
        load_baseline(path)
