"""Sizes of a lab."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.lab.spec import LabSpec, parse_isolation
from brctl.model.errors import UsageError


@given(st.integers(1, 64), st.integers(1, 8))
def test_parallel_sizes_multiply_to_the_world_size(nodes: int, ranks: int) -> None:
    """Whatever the size of the lab, its declared tp x pp x dp is the number of ranks."""
    spec = LabSpec(nodes=nodes, ranks_per_node=ranks)
    assert prod(spec.parallel().values()) == spec.world_size


def test_the_default_lab_shows_all_three_axes() -> None:
    """Eight ranks are tp 2, pp 2, dp 2."""
    assert LabSpec().parallel() == {"tp": 2, "pp": 2, "dp": 2}


def test_a_lab_of_replicas_alone_has_no_other_axis() -> None:
    """Each node replays by itself, so two rounds of groups have one machine in common."""
    assert LabSpec(data_parallel=True).parallel() == {"tp": 1, "pp": 1, "dp": 8}
    with pytest.raises(UsageError, match="has not only replicas"):
        LabSpec(data_parallel=True, every_step=True).check()


@pytest.mark.parametrize(
    "spec", [LabSpec(nodes=0), LabSpec(nodes=65), LabSpec(gpus=0), LabSpec(standbys=-1)]
)
def test_sizes_that_cannot_be_built_are_refused(spec: LabSpec) -> None:
    """The limit is in the message."""
    with pytest.raises(UsageError, match="a lab has"):
        spec.check()


def test_an_unknown_isolation_names_the_known_ones() -> None:
    """A typo gets the nearest word."""
    with pytest.raises(UsageError, match="did you mean 'netns'"):
        parse_isolation("netn")
