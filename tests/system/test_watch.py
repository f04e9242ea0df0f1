"""A watcher in a real lab: from a GPU that is lost to new steps, and nobody at a keyboard."""

import pytest

from tests.bench.watch import measure

pytestmark = [pytest.mark.system, pytest.mark.torch, pytest.mark.deep]


def test_a_lost_gpu_is_swapped_out_without_a_person() -> None:
    row = measure("gpu-lost", nodes=3)
    assert {"suspicion", "verdict", "decision", "new step"} <= set(row)
