"""Heavy checks stay off nodes that somebody trains on, whoever started it."""

from types import SimpleNamespace
from typing import cast

import pytest

from brctl.engine.controller.wiring import Controller
from brctl.engine.sweeps.busy_nodes import nodes_of_jobs, refuse_busy
from brctl.model.errors import GuardError
from brctl.model.inventory import Inventory, Node
from tests.fakes.run_context import example_job

GROUPS = {
    "part:train": ("n1", "n5"),
    "job:7": ("n1", "n2", "n3", "n4"),
    "job:8": ("n5", "n6"),
    "job:llama": ("n5", "n6"),
}


def test_a_job_that_only_the_scheduler_knows_keeps_its_nodes() -> None:
    """Our own job is named once, by its name; another one by the scheduler's number."""
    nodes = {f"n{i}": Node(f"n{i}", "127.0.0.1") for i in range(1, 8)}
    here = SimpleNamespace(jobs={"demo": example_job()}, inventory=Inventory(nodes, GROUPS))
    found = nodes_of_jobs(cast("Controller", here))
    assert found == {"demo": ("n1", "n2", "n3", "n4"), "8": ("n5", "n6")}
    with pytest.raises(GuardError, match="n6 carries ranks of 8: heavy checks"):
        refuse_busy(found, ["n6", "n7"], hint="")
    refuse_busy(found, ["n7"], hint="")
