"""A finding stands until its check is asked again; a sweep of other checks forgot it."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from brctl.engine.sweeps.node_states import FRESH, known, known_against
from brctl.engine.sweeps.sweep_file import read_sweep
from brctl.engine.sweeps.sweep_store import latest, save
from brctl.model.command import Outcome
from brctl.model.evidence import Weight
from brctl.model.sweeps.report import CheckResult, ProbeStatus
from brctl.model.sweeps.sweep import Health, NodeHealth, Sweep
from brctl.sweep.standing import with_standing
from tests.sweep.healths import START, gapped, node, sweep

LEVEL_2 = "gpu.gemm"


def found(check: str, at: datetime = START) -> NodeHealth:
    """A node that failed a check at a moment."""
    bad = node("n1", Health.CRITICAL, check)
    return replace(bad, evidence=tuple(replace(item, at=at) for item in bad.evidence))


@pytest.mark.parametrize(
    ("before", "asked", "health"),
    [
        (found(LEVEL_2), ("gpu.ecc",), Health.CRITICAL),
        (found(LEVEL_2), ("gpu.ecc", LEVEL_2), Health.OK),
        (found(LEVEL_2, START - timedelta(hours=2)), ("gpu.ecc",), Health.OK),
        (found("job.storage"), ("gpu.ecc",), Health.OK),
        (node("n1", Health.UNKNOWN), ("gpu.ecc",), Health.OK),
    ],
    ids=["not asked", "asked and sound", "long ago", "of a job", "was silent"],
)
def test_what_was_found_stands_while_nobody_looks(
    before: NodeHealth, asked: tuple[str, ...], health: Health
) -> None:
    """A node that fails under load is no healthy one after a light look."""
    now = replace(
        node("n1"), evidence=(replace(found("gpu.ecc").evidence[0], weight=Weight.CLEARS),)
    )
    assert with_standing(now, before, asked, START - FRESH).health is health


def test_a_check_that_ran_out_of_time_was_not_asked_again() -> None:
    """Neither was one of a node that did not answer."""
    sound = node("n1")
    late = replace(sound.report, results=(CheckResult(LEVEL_2, ProbeStatus.TIMED_OUT),))
    silent = replace(sound.report, outcome=Outcome.CONNECT_TIMED_OUT)
    for report in (late, silent):
        now = with_standing(
            replace(sound, report=report), found(LEVEL_2), (LEVEL_2,), START - FRESH
        )
        assert [item.source for item in now.evidence] == [LEVEL_2]


def test_status_keeps_what_a_light_sweep_does_not_ask(tmp_path: Path) -> None:
    """The sweep's own file says what it saw, and no more."""
    heavy = Sweep("S-1", 2, (LEVEL_2,), START, 9.0, (found(LEVEL_2),))
    save(tmp_path, heavy)
    light = save(tmp_path, sweep(5, {"n1": Health.OK, "n2": Health.OK}))
    newest = latest(tmp_path)
    assert newest is not None
    assert {n.node: n.health for n in newest.nodes} == {"n1": Health.CRITICAL, "n2": Health.OK}
    assert known_against(tmp_path, ["n1", "n2"]) == {"n1": (LEVEL_2, "n1 is bad")}
    seen = read_sweep(light)
    assert seen is not None
    assert {n.health for n in seen.nodes} == {Health.OK}


def test_a_hint_outlives_a_look_that_was_cut_short(tmp_path: Path) -> None:
    """The gap makes the node UNKNOWN; the end of the gap does not make it well."""
    slow = found(LEVEL_2)
    hint = replace(slow.evidence[0], weight=Weight.HINTS)
    slow = replace(slow, health=Health.WARNING, evidence=(hint,))
    save(tmp_path, Sweep("S-1", 2, (LEVEL_2,), START, 9.0, (slow,)))
    states = []
    for minute, seen in ((5, gapped("n1")), (10, gapped("n1")), (15, node("n1"))):
        save(tmp_path, sweep(minute, [seen]))
        states += [state.health for state in known(tmp_path)]
    assert states == [Health.UNKNOWN, Health.UNKNOWN, Health.WARNING]
    save(tmp_path, sweep(75, {"n1": Health.OK}))
    assert [state.health for state in known(tmp_path)] == [Health.OK]
