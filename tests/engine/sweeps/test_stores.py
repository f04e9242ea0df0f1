"""What is written down comes back the same; what is damaged is said, never guessed."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from brctl.engine.incidents import verdict_store
from brctl.engine.incidents.verdict_store import VerdictState
from brctl.engine.sweeps import sweep_store
from brctl.model.errors import ConfigError, UsageError
from brctl.model.evidence import Gap, Subject
from brctl.model.fault import FaultClass
from brctl.model.verdict import Verdict
from brctl.playbook.recommend import recommend
from brctl.verdict.decide import DecisionContext, decide
from tests.fakes.nodes import NOW, clear, seen, silent, sweep_of


def verdict(node: str = "n3", *, seconds: int = 0) -> Verdict:
    gap = Gap(Subject(node), "gpu.ecc", "timed out")
    context = DecisionContext(
        NOW + timedelta(seconds=seconds), "llm", 7, stalled=True, ranks={node: (2,)}
    )
    return decide([seen(node)], [gap], context)[0]


def test_a_verdict_survives_the_disk_unchanged(tmp_path: Path) -> None:
    verdict_store.save_new(tmp_path, verdict())
    (stored,) = verdict_store.open_verdicts(tmp_path)
    assert stored.verdict == verdict()


def test_a_newer_verdict_on_the_same_nodes_supersedes_the_older(tmp_path: Path) -> None:
    verdict_store.save_new(tmp_path, verdict())
    verdict_store.save_new(tmp_path, verdict(seconds=30))
    states = [s.state for s in verdict_store.load_all(tmp_path)]
    assert states == [VerdictState.OPEN, VerdictState.SUPERSEDED]


def test_two_causes_of_one_look_on_the_same_nodes_both_stay_open(tmp_path: Path) -> None:
    other = replace(verdict(), id="V-2", fault=FaultClass.GPU_MEMORY_ECC)
    verdict_store.save_new(tmp_path, verdict())
    verdict_store.save_new(tmp_path, other)
    found = {stored.verdict.id for stored in verdict_store.open_verdicts(tmp_path)}
    assert found == {verdict().id, "V-2"}


def test_finding_nothing_does_not_close_an_open_verdict(tmp_path: Path) -> None:
    verdict_store.save_new(tmp_path, verdict())
    verdict_store.save_new(tmp_path, decide((), (), DecisionContext(NOW, "llm", stalled=True))[0])
    assert [s.verdict.id for s in verdict_store.open_verdicts(tmp_path)] == [verdict().id]


def test_two_open_verdicts_must_be_told_apart_by_name(tmp_path: Path) -> None:
    verdict_store.save_new(tmp_path, verdict("n3"))
    verdict_store.save_new(tmp_path, verdict("n5"))
    with pytest.raises(UsageError, match="2 verdicts are open"):
        verdict_store.the_one(tmp_path, None)
    assert verdict_store.the_one(tmp_path, verdict("n5").id).verdict.nodes == ("n5",)


def test_a_verdict_without_a_cause_can_be_read_and_names_itself_when_asked_to_be_fixed(
    tmp_path: Path,
) -> None:
    unknown = recommend(decide((), (), DecisionContext(NOW, "llm", stalled=False))[0])
    verdict_store.save_new(tmp_path, unknown)
    assert verdict_store.to_read(tmp_path, None).verdict.id == unknown.id
    with pytest.raises(UsageError, match=rf"{unknown.id} \(unknown\) is nothing to do"):
        verdict_store.the_one(tmp_path, None)


def unknown_at(seconds: int, *, stalled: bool = True) -> Verdict:
    context = DecisionContext(NOW + timedelta(seconds=seconds), "llm", stalled=stalled)
    return recommend(decide((), (), context)[0])


def test_a_stopped_job_without_a_known_cause_can_be_fixed(tmp_path: Path) -> None:
    """The tree knows what comes next, so the verdict is open until a newer one of the job comes."""
    verdict_store.save_new(tmp_path, unknown_at(0))
    assert verdict_store.the_one(tmp_path, None).verdict.playbook == "stop-time-checks"
    verdict_store.save_new(tmp_path, unknown_at(30))
    assert verdict_store.the_one(tmp_path, None).verdict.id == unknown_at(30).id
    verdict_store.save_new(tmp_path, verdict("n3", seconds=60))
    assert verdict_store.the_one(tmp_path, None).verdict.nodes == ("n3",)
    verdict_store.save_new(tmp_path, unknown_at(90))
    assert verdict_store.the_one(tmp_path, None).verdict.nodes == ("n3",)


def test_a_job_that_is_found_well_closes_what_was_unknown(tmp_path: Path) -> None:
    verdict_store.save_new(tmp_path, unknown_at(0))
    verdict_store.save_new(tmp_path, unknown_at(30, stalled=False))
    assert verdict_store.open_verdicts(tmp_path) == ()


def test_what_is_open_is_read_before_what_is_newer(tmp_path: Path) -> None:
    verdict_store.save_new(tmp_path, verdict("n3"))
    verdict_store.save_new(tmp_path, decide((), (), DecisionContext(NOW, "llm", stalled=True))[0])
    assert verdict_store.to_read(tmp_path, None).verdict.nodes == ("n3",)
    verdict_store.save_new(tmp_path, verdict("n5"))
    with pytest.raises(UsageError, match="2 verdicts are open"):
        verdict_store.to_read(tmp_path, None)


@pytest.mark.parametrize("name", ["V-ZZZZ", "../../etc/passwd"])
def test_an_unknown_verdict_is_a_typing_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="no verdict"):
        verdict_store.load(tmp_path, name)


def test_a_damaged_verdict_that_is_asked_for_names_its_file(tmp_path: Path) -> None:
    """In a list it is set aside instead; see tests/engine/incidents/test_verdict_store.py."""
    verdict_store.save_new(tmp_path, verdict())
    (path,) = (tmp_path / "verdicts").glob("V-*.json")
    path.write_text("{")
    with pytest.raises(ConfigError, match=path.name):
        verdict_store.load(tmp_path, path.stem)


def test_the_newest_answer_of_every_node_is_known_after_a_partial_sweep(tmp_path: Path) -> None:
    sweep_store.save(tmp_path, replace(sweep_of(clear("n1"), clear("n2")), id="S-1"))
    sweep_store.save(tmp_path, replace(sweep_of(silent("n2")), id="S-2"))
    known = sweep_store.latest(tmp_path)
    assert known is not None
    assert {n.node: n.health.value for n in known.nodes} == {"n1": "ok", "n2": "unknown"}


def test_without_a_sweep_nothing_is_known(tmp_path: Path) -> None:
    assert sweep_store.latest(tmp_path) is None


@pytest.mark.parametrize(
    "write",
    [
        lambda state: verdict_store.save_new(state, verdict()),
        lambda state: sweep_store.save(state, sweep_of(clear("n1"))),
    ],
    ids=["verdict", "sweep"],
)
def test_whoever_writes_first_leaves_the_state_to_its_owner(
    tmp_path: Path, write: Callable[[Path], object]
) -> None:
    """Not only the folder written to: those above it that had to be made, too."""
    before = os.umask(0)
    try:
        write(tmp_path / "a" / "state")
    finally:
        os.umask(before)
    made = [tmp_path / "a", *(p for p in (tmp_path / "a").rglob("*") if p.is_dir())]
    assert len(made) > 2
    assert {p.stat().st_mode & 0o777 for p in made} == {0o700}
