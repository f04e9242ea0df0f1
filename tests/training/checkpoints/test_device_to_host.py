"""What tests/gpu measures runs on a CPU as well: its first run on a GPU is not its first."""

from pathlib import Path

import pytest

from tests.gpu.device_to_host import Size, copy_rates, train

pytestmark = pytest.mark.torch
SMALL = Size(layers=2, width=8, batch=4)


def test_the_rates_of_copies_are_measured(tmp_path: Path) -> None:
    rates = copy_rates("cpu", 1, tmp_path)
    assert min(rates.slot, rates.pinned, rates.pageable) > 0


@pytest.mark.parametrize("fused", [False, True])
def test_training_goes_on_from_what_was_kept_bit_by_bit(tmp_path: Path, *, fused: bool) -> None:
    undisturbed = train("cpu", SMALL, 6, None, fused=fused)
    assert (undisturbed.resumed, undisturbed.saved, undisturbed.blocked_s) == (0, 0, 0.0)
    first = train("cpu", SMALL, 3, tmp_path, fused=fused)
    assert first.saved >= 1
    assert first.blocked_s > 0
    resumed = train("cpu", SMALL, 6, tmp_path, fused=fused)
    assert 1 <= resumed.resumed <= 3
    assert resumed.digest == undisturbed.digest
