"""The history index: each transition once, rebuilt to the same from the sweeps."""

from datetime import timedelta
from pathlib import Path

import pytest

from brctl.engine.sweeps.cycle import jitter_s, labels_of, sweep_lock, write_metrics
from brctl.engine.sweeps.history import SweepHistory
from brctl.engine.sweeps.history_database import open_history
from brctl.model.errors import ConfigError, LockedError
from brctl.model.inventory import Node
from brctl.model.sweeps.sweep import Health, Sweep
from tests.sweep.healths import START, sweep

DAY = timedelta(hours=24)


def night() -> list[Sweep]:
    """A node fails, recovers, falls silent; another flaps."""
    states = [
        (Health.OK, Health.CRITICAL), (Health.CRITICAL, Health.OK), (Health.OK, Health.OK),
        (Health.OK, Health.CRITICAL), (Health.UNKNOWN, Health.OK), (Health.UNKNOWN, Health.OK),
    ]  # fmt: skip
    return [sweep(i * 5, {"n1": a, "n2": b}) for i, (a, b) in enumerate(states)]


def test_every_transition_is_kept_once(tmp_path: Path) -> None:
    """A sweep recorded twice changes nothing the second time."""
    history = SweepHistory(tmp_path)
    for each in night():
        history.record(each, {}, DAY)
        assert history.record(each, {}, DAY).quiet
    reported = [(t.node, t.check, t.what) for t in history.of_node("n1", START - DAY)]
    assert reported == [
        ("n1", "gpu.ecc", "new"),
        ("n1", "gpu.ecc", "recovered"),
        ("n1", "transport", "new"),
    ]
    assert history.totals() == {'brctl_transport_errors_total{kind="connect-timed-out"}': 2.0}


def test_flappers_are_counted(tmp_path: Path) -> None:
    """How often a check began to fail on a node, worst first."""
    history = SweepHistory(tmp_path)
    for i in range(9):
        bad = Health.CRITICAL if i % 3 == 0 else Health.OK
        history.record(sweep(i * 5, {"n1": bad, "n2": Health.CRITICAL}), {}, DAY)
    assert history.flappers(START - DAY, least=2) == (("n1", "gpu.ecc", 3),)
    assert history.sweeps_since(START - DAY) == 9
    assert history.sweeps_since(START + DAY) == 0


def test_a_flapper_that_is_told_once_is_still_counted(tmp_path: Path) -> None:
    """Cron falls silent about it; the report does not."""
    history = SweepHistory(tmp_path)
    for i in range(30):
        bad = Health.CRITICAL if i % 3 == 0 else Health.OK
        history.record(sweep(i * 5, {"n1": bad}), {}, DAY)
    assert history.flappers(START - DAY) == (("n1", "gpu.ecc", 10),)
    assert history.flappers(START + DAY) == ()


def test_the_first_sweep_calls_nothing_a_mass(tmp_path: Path) -> None:
    """Without an earlier look nobody knows that nodes began to fail together."""
    history = SweepHistory(tmp_path)
    silent = {f"n{i}": Health.UNKNOWN for i in range(20)}
    fine = {f"m{i}": Health.OK for i in range(20)}
    first = history.record(sweep(0, {**silent, **fine}), {}, DAY)
    assert (len(first.new), first.mass) == (20, ())
    now_silent = {name: Health.UNKNOWN for name in fine}
    second = history.record(sweep(5, {**silent, **now_silent}), {}, DAY)
    assert (second.new, len(second.mass[0].nodes)) == ((), 20)


def test_a_dead_gateway_is_one_event_and_not_32_broken_nodes(tmp_path: Path) -> None:
    """All behind it fall silent at once: told once, named by what they share."""
    history = SweepHistory(tmp_path)
    behind = [Node(f"a{i}", "10.0.0.1", via="gw1", labels={"hall": "1"}) for i in range(32)]
    others = [Node(f"b{i}", "10.0.0.2", via="gw2", labels={"hall": "1"}) for i in range(32)]
    labels = labels_of([*behind, *others])
    fine = {name: Health.OK for name in labels}
    history.record(sweep(0, fine), labels, DAY)
    dead = {node.name: Health.UNKNOWN for node in behind}
    changes = history.record(sweep(5, {**fine, **dead}), labels, DAY)
    assert changes.new == ()
    assert [(m.check, len(m.nodes), m.shared) for m in changes.mass] == [
        ("transport", 32, "via:gw1")
    ]


def test_one_sweep_of_a_context_at_a_time(tmp_path: Path) -> None:
    """A second one is told to skip, or fails; another context is free."""
    with sweep_lock(tmp_path, "prod", "skip") as first, sweep_lock(tmp_path, "lab", "skip") as lab:
        assert (first, lab) == (True, True)
        with sweep_lock(tmp_path, "prod", "skip") as second:
            assert second is False
        with pytest.raises(LockedError), sweep_lock(tmp_path, "prod", "fail"):
            pass
    with sweep_lock(tmp_path, "prod", "fail") as free:
        assert free


def test_each_host_keeps_its_slot() -> None:
    """Jitter is a property of the host, spread over the whole interval."""
    slots = [jitter_s(f"login{i}", 300) for i in range(200)]
    assert jitter_s("login7", 300) == slots[7]
    assert 0 <= min(slots) < 30
    assert 270 < max(slots) < 300


def test_a_link_planted_where_metrics_go_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """Collectors' folders are often everybody's: whoever plants a link there chooses no file."""
    theirs = tmp_path / "authorized_keys"
    theirs.write_text("old")
    (tmp_path / "brctl.prom").symlink_to(theirs)
    write_metrics(tmp_path / "brctl.prom", "new")
    assert theirs.read_text() == "old"
    assert (tmp_path / "brctl.prom").read_text() == "new"


def test_a_metrics_file_is_replaced_whole(tmp_path: Path) -> None:
    """No half-written file, no left-over part, and an error that names the path."""
    target = tmp_path / "brctl.prom"
    target.write_text("old")
    write_metrics(target, "new")
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["brctl.prom"]
    with pytest.raises(ConfigError, match="cannot be written"):
        write_metrics(tmp_path / "none" / "x", "new")


def test_a_look_by_hand_takes_no_news_from_cron(tmp_path: Path) -> None:
    """Somebody swept at a terminal a minute before cron, and nobody was mailed."""
    history = SweepHistory(tmp_path)
    well, broken = (sweep(i * 5, {"n1": s}) for i, s in enumerate((Health.OK, Health.CRITICAL)))
    history.record(well, {}, DAY, regular=True)
    assert [p.node for p in history.record(broken, {}, DAY).new] == ["n1"]
    again = [sweep(i * 5, {"n1": Health.CRITICAL}) for i in (2, 3)]
    assert [p.node for p in history.record(again[0], {}, DAY, regular=True).new] == ["n1"]
    assert history.record(again[1], {}, DAY, regular=True).quiet
    assert [t.what for t in history.of_node("n1", START - DAY)] == ["new"]


def test_an_index_of_before_is_not_told_again(tmp_path: Path) -> None:
    """An upgrade must not mail every problem that was known already."""
    history = SweepHistory(tmp_path)
    history.record(sweep(0, {"n1": Health.CRITICAL}), {}, DAY, regular=True)
    with open_history(tmp_path) as database:
        database.execute("DROP TABLE told")
    later = history.record(sweep(5, {"n1": Health.CRITICAL}), {}, DAY, regular=True)
    assert later.quiet
