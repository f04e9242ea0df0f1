"""One node's newest answer and its past, without reading the whole fleet's sweeps."""

import gzip
import json
from pathlib import Path

import msgspec

from brctl.engine.sweeps.history_database import database_path
from brctl.engine.sweeps.node_states import known, node_health, node_history, remember_nodes
from brctl.engine.sweeps.sweep_file import read_head, read_sweep
from brctl.engine.sweeps.sweep_store import LOOKED_INTO, all_sweeps, latest, save
from brctl.model.sweeps.sweep import Health
from tests.sweep.healths import gapped, node, sweep


def test_every_node_is_known_by_its_newest_answer(tmp_path: Path) -> None:
    """A sweep of some nodes renews those; an older sweep that comes late changes nothing."""
    save(tmp_path, sweep(0, {"n1": Health.OK, "n2": Health.CRITICAL}))
    save(tmp_path, sweep(10, [gapped("n1")]))
    remember_nodes(tmp_path, sweep(5, {"n1": Health.CRITICAL}))
    reported = [(k.node, k.health, k.check, k.detail) for k in known(tmp_path)]
    assert reported == [
        ("n1", Health.UNKNOWN, "gpu.ecc", "killed at its deadline"),
        ("n2", Health.CRITICAL, "gpu.ecc", "n2 is bad"),
    ]
    assert node_health(tmp_path, "n1") == gapped("n1")


def test_the_past_of_a_node_keeps_only_changes(tmp_path: Path) -> None:
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


def test_the_latest_of_all_nodes_is_put_together_from_several_sweeps(tmp_path: Path) -> None:
    """A sweep of a few nodes renews those; the index and the files give the same."""
    save(tmp_path, sweep(0, {"n1": Health.OK, "n2": Health.CRITICAL, "n3": Health.OK}))
    save(tmp_path, sweep(10, {"n3": Health.WARNING}))
    indexed = latest(tmp_path)
    database_path(tmp_path).unlink()
    read = latest(tmp_path)
    for found in (indexed, read):
        assert found
        assert found.id == sweep(10, {}).id
        assert {n.node: n.health for n in found.nodes} == {
            "n1": Health.OK, "n2": Health.CRITICAL, "n3": Health.WARNING,
        }  # fmt: skip


def test_sweeps_of_the_version_before_are_still_read(tmp_path: Path) -> None:
    """They lie beside the packed ones, as plain JSON, and the newest wins."""
    old = sweep(0, {"n1": Health.CRITICAL, "n2": Health.OK})
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / f"{old.id}.json").write_bytes(msgspec.json.encode(old))
    assert latest(tmp_path) == old
    path = save(tmp_path, sweep(10, {"n2": Health.WARNING}))
    assert json.loads(gzip.decompress(path.read_bytes()))["nodes"][0]["node"] == "n2"
    database_path(tmp_path).unlink()
    found = latest(tmp_path)
    assert found
    assert {n.node: n.health for n in found.nodes} == {
        "n1": Health.CRITICAL, "n2": Health.WARNING,
    }  # fmt: skip
    assert [s.id for s in all_sweeps(tmp_path)] == [old.id, found.id]


def test_a_file_cut_short_is_passed_over(tmp_path: Path) -> None:
    """Whatever byte the disk lost it at."""
    path = save(tmp_path, sweep(0, {"n1": Health.OK, "n2": Health.OK}))
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert read_sweep(path) is None
        head = read_head(path)
        assert head is None or head.id == sweep(0, {}).id


def test_a_node_no_recent_sweep_asked_is_no_longer_known(tmp_path: Path) -> None:
    """A machine that left the inventory does not stay for ever."""
    save(tmp_path, sweep(0, {"gone": Health.OK}))
    for i in range(1, LOOKED_INTO + 1):
        save(tmp_path, sweep(i, {"n1": Health.OK}))
    found = latest(tmp_path)
    assert found
    assert [n.node for n in found.nodes] == ["n1"]


def test_a_damaged_index_is_set_aside(tmp_path: Path) -> None:
    """The sweeps are the truth; a broken database stops no sweep."""
    save(tmp_path, sweep(0, {"n1": Health.OK}))
    for path in database_path(tmp_path).parent.glob("history.sqlite3*"):
        path.unlink()
    database_path(tmp_path).write_bytes(b"this is no database" * 100)
    save(tmp_path, sweep(1, {"n2": Health.OK}))
    assert [k.node for k in known(tmp_path)] == ["n2"]
    assert len(list((tmp_path / "sweeps").glob("*.damaged"))) == 1
