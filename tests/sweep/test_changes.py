"""Cron stays quiet without hiding anything: new, recovered, still, flapping, many at once."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from brctl.model.sweeps.changes import Changes, Key, Tracked
from brctl.model.sweeps.sweep import Health, NodeHealth
from brctl.sweep.changes import (
    FLAP_WINDOW,
    FLAPS_TOLD,
    STICKY_LOOKS,
    compare,
    recognise_mass,
    shared_label,
)
from brctl.sweep.problems import TRANSPORT, cleared_by, problems_of
from tests.sweep.healths import START, gapped, node

DAY = timedelta(hours=24)
BAD, OK, SILENT = Health.CRITICAL, Health.OK, Health.UNKNOWN


class Watch:
    """One fleet swept again and again."""

    def __init__(self) -> None:
        self.known: Mapping[Key, Tracked] = {}
        self.minute = 0.0

    def see(self, *nodes: NodeHealth, after_min: float = 5) -> Changes:
        self.minute += after_min
        now_at = START + timedelta(minutes=self.minute)
        changes = compare(self.known, problems_of(nodes), cleared_by(nodes), now_at, DAY)
        self.known = changes.tracked
        return changes


def test_a_problem_is_told_once_and_then_only_as_a_reminder() -> None:
    """New at first, silent while it lasts, reminded after a day."""
    watch = Watch()
    assert [p.node for p in watch.see(node("n1", BAD)).new] == ["n1"]
    assert watch.see(node("n1", BAD)).quiet
    assert [t.problem.node for t in watch.see(node("n1", BAD), after_min=1440).still] == ["n1"]
    assert watch.see(node("n1", BAD)).quiet


def test_one_clean_look_is_no_recovery() -> None:
    """An alert that comes and goes is one alert."""
    watch = Watch()
    watch.see(node("n1", BAD))
    assert watch.see(node("n1", OK)).quiet
    assert watch.see(node("n1", BAD)).quiet
    for _ in range(STICKY_LOOKS - 1):
        assert watch.see(node("n1", OK)).quiet
    recovered = watch.see(node("n1", OK)).recovered
    assert [(t.problem.node, t.since) for t in recovered] == [("n1", START + timedelta(minutes=5))]


def test_silence_recovers_nothing() -> None:
    """A node that stops answering keeps its fault and gets one more problem."""
    watch = Watch()
    watch.see(node("n1", BAD))
    changes = watch.see(node("n1", SILENT))
    assert [(p.check, p.health) for p in changes.new] == [(TRANSPORT, Health.UNKNOWN)]
    for _ in range(10):
        assert watch.see(node("n1", SILENT)).quiet
    assert watch.known["n1", "gpu.ecc"].recovered_at is None


def test_a_check_that_was_not_asked_recovers_nothing() -> None:
    """A sweep of other checks says nothing about this one, a hung check neither."""
    watch = Watch()
    watch.see(node("n1", BAD))
    for _ in range(5):
        assert watch.see(node("n1", OK, check="host.clock")).recovered == ()
        assert watch.see(gapped("n1")).recovered == ()


def test_silence_that_becomes_a_fault_is_worse() -> None:
    """The same check going from UNKNOWN to CRITICAL is told."""
    watch = Watch()
    watch.see(gapped("n1"))
    assert [p.health for p in watch.see(node("n1", BAD)).worse] == [Health.CRITICAL]


def test_a_flapping_problem_is_told_as_such_and_then_kept_quiet() -> None:
    """After the third comeback only a calm day is news."""
    watch = Watch()
    reported = []
    for _ in range(FLAPS_TOLD + 4):
        for health in (BAD, OK, OK):
            changes = watch.see(node("n1", health))
            reported.append((len(changes.new), len(changes.flapping), len(changes.recovered)))
    news = [sum(column) for column in zip(*reported, strict=True)]
    assert news == [FLAPS_TOLD, 1, FLAPS_TOLD]
    calm = watch.see(node("n1", OK), after_min=FLAP_WINDOW.total_seconds() / 60)
    assert [t.problem.node for t in calm.recovered] == ["n1"]
    assert watch.see(node("n1", OK)).quiet


def fleet(count: int) -> dict[str, dict[str, str]]:
    return {f"n{i}": {"rack": f"r{i // 10}", "site": "x"} for i in range(count)}


def test_forty_nodes_at_once_are_one_event() -> None:
    """A switch or a file system, not forty GPUs; the rest of the news stands beside it."""
    nodes = [node(f"n{i}", SILENT) for i in range(40)] + [node("n99", BAD)]
    changes = recognise_mass(Watch().see(*nodes), fleet(100))
    assert [(m.check, len(m.nodes)) for m in changes.mass] == [(TRANSPORT, 40)]
    assert [p.node for p in changes.new] == ["n99"]


@pytest.mark.parametrize(
    ("nodes", "shared"),
    [
        ([f"n{i}" for i in range(10, 20)], "rack:r1"),
        ([f"n{i}" for i in range(10, 19)], "rack:r1"),
        ([f"n{i}" for i in range(10, 13)], ""),
        ([f"n{i}" for i in range(100)], "site:x"),
        ([f"n{i}" for i in range(0, 100, 10)], ""),
    ],
)
def test_what_the_failing_nodes_share_is_named(nodes: list[str], shared: str) -> None:
    """A label counts when most who have it fail and most who fail have it."""
    assert shared_label(nodes, fleet(100)) == shared


def test_a_few_nodes_are_not_a_mass() -> None:
    """Seven of a hundred stay seven nodes."""
    changes = recognise_mass(Watch().see(*(node(f"n{i}", BAD) for i in range(7))), fleet(100))
    assert changes.mass == ()
    assert len(changes.new) == 7
