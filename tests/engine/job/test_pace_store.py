"""What a look sees of a job that trains is kept, and becomes the price of its place."""

from dataclasses import replace
from pathlib import Path

from brctl.engine.job.pace_store import measured_price, pace_of
from brctl.model.inventory import Inventory, Node
from brctl.playbook.placement.price import ASSUMED
from tests.evidence.job.test_history import JOB, past, status

TRAINING = replace(status(past(0.4, 0.41, 0.4, recent=0.4), others=0.02), stalled=False)


def fleet(spines: str) -> Inventory:
    nodes = zip(JOB.nodes, spines, strict=True)
    return Inventory({n: Node(n, "x", labels={"spine": s} if s != "-" else {}) for n, s in nodes})


def test_only_a_job_that_trains_on_nodes_with_known_places_tells_a_pace() -> None:
    seen = pace_of(TRAINING, fleet("abababab"))
    assert seen is not None
    assert (seen.job, seen.widest, seen.step_s) == (JOB.name, 2, 0.4)
    assert pace_of(TRAINING, fleet("ababab--")) is None
    assert pace_of(replace(TRAINING, stalled=True), fleet("abababab")) is None
    assert pace_of(replace(TRAINING, stalled=None), fleet("abababab")) is None


def test_a_damaged_file_leaves_the_assumed_price(tmp_path: Path) -> None:
    assert measured_price(tmp_path, "here") == ASSUMED
    path = tmp_path / "static" / "here.paces.json"
    path.parent.mkdir()
    path.write_text("{")
    assert measured_price(tmp_path, "here") == ASSUMED
    assert not path.exists()
