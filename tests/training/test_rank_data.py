"""The place in its data that a rank of the lab's job keeps in a checkpoint."""

import pytest

from brctl.training.model import BATCH
from brctl.training.rank_data import CountedData

pytestmark = pytest.mark.torch


def test_samples_are_counted_from_a_restart_that_found_no_place_of_its_own() -> None:
    """As with another number of ranks: nobody knows what this rank was given before."""
    data = CountedData(seed=1, reader=0)
    data.go_on(None, 40)
    assert data.place() == {"position": 40, "samples": 0, "since_step": 40}
    later = {"position": 55, "samples": 15 * BATCH, "since_step": 40}
    again = CountedData(seed=1, reader=0)
    again.go_on(later, 55)
    assert again.place() == later
    assert again.place(behind=5) == {"position": 50, "samples": 10 * BATCH, "since_step": 40}
