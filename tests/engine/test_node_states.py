"""One node's newest answer and its past, without reading the whole fleet's sweeps."""

from pathlib import Path

from brctl.engine.node_states import known, node_health, node_history, remember_nodes
from brctl.engine.sweep_store import save
from brctl.model.sweep import Health
from tests.sweep.healths import gapped, node, sweep


def test_every_node_is_known_by_its_newest_answer(tmp_path: Path) -> None:
    """A sweep of some nodes renews those; an older sweep that comes late changes nothing."""
    save(tmp_path, sweep(0, {"n1": Health.OK, "n2": Health.CRITICAL}))
    save(tmp_path, sweep(10, [gapped("n1")]))
    remember_nodes(tmp_path, sweep(5, {"n1": Health.CRITICAL}))
    told = [(k.node, k.health, k.check, k.detail) for k in known(tmp_path)]
    assert told == [
        ("n1", Health.UNKNOWN, "gpu.ecc", "killed at its deadline"),
        ("n2", Health.CRITICAL, "gpu.ecc", "n2 is bad"),
    ]
    assert node_health(tmp_path, "n1") == gapped("n1")


def test_a_node_s_past_keeps_only_changes(tmp_path: Path) -> None:
    """Newest first; staying in a state is no event."""
    states = [Health.OK, Health.OK, Health.CRITICAL, Health.CRITICAL, Health.UNKNOWN, Health.OK]
    for i, state in enumerate(states):
        save(tmp_path, sweep(i, {"n1": state}))
    past = node_history(tmp_path, "n1", 10)
    assert [p.health for p in past] == [Health.OK, Health.UNKNOWN, Health.CRITICAL, Health.OK]
    assert [p.check for p in past] == ["", "transport", "gpu.ecc", ""]
    assert len(node_history(tmp_path, "n1", 2)) == 2


def test_nothing_is_known_before_the_first_sweep(tmp_path: Path) -> None:
    """And looking makes no file."""
    assert known(tmp_path) == ()
    assert node_health(tmp_path, "n1") is None
    assert node_history(tmp_path, "n1", 5) == ()
    assert list(tmp_path.iterdir()) == []


def test_five_thousand_nodes_are_listed_quickly(tmp_path: Path) -> None:
    """The states of a large fleet are read without its evidence."""
    save(tmp_path, sweep(0, [node(f"n{i}") for i in range(5000)]))
    assert len(known(tmp_path)) == 5000
