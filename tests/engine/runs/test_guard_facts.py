"""A guard is told what it declares and nothing else; what cannot be had refuses."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.backends.contract import Cordon
from brctl.engine.runs.guard_facts import Guarding, GuardQuestion
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.remediate import create_run
from brctl.engine.runs.run_files import INPUTS, RESULT, RunInputs, RunRequest, save_result
from brctl.journal.store import Journal
from brctl.library.guards import SiteGuards
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.errors import UnavailableError
from brctl.model.runs.event import EventType
from brctl.model.runs.plan import GuardResult
from brctl.model.runs.playbook import GuardSpec, Json
from brctl.model.runs.result import PastRun, RunState
from brctl.playbook.guard_facts import Fact
from brctl.playbook.guards import GUARDS, needed_by
from tests.fakes.file_backend import FileBackend
from tests.fakes.run_context import NOON, example_verdict, fake_context

CORDON = load_playbook(shipped_dir("playbooks") / "cordon.yaml")
UNCORDON = load_playbook(shipped_dir("playbooks") / "uncordon.yaml")


class SilentBackend(FileBackend):
    """A scheduler that does not answer."""

    async def cordons(self) -> Mapping[str, Cordon]:
        raise UnavailableError("slurmctld does not answer")


def said(folder: Path, *kinds: str) -> dict[str, GuardResult]:
    """What these guards of the site say while nobody knows the cordons."""
    lines = tuple(GuardSpec(kind, {"at_least": 0, "percent": 1}, "g.yaml:1") for kind in kinds)
    context = fake_context(folder, guards=SiteGuards(lines))
    context = replace(context, backend=SilentBackend(context.world))
    inputs = RunInputs({"nodes": ["n1"]}, {}, "", {"name": "demo"})
    question = GuardQuestion(inputs, {"inputs": {}}, ("n1",), kinds=set(kinds))
    checked = Guarding(context, CORDON).check(question)
    return {result.kind: result for result in asyncio.run(checked)}


def test_a_guard_that_needs_no_cordons_is_asked_while_nobody_can_tell_them(tmp_path: Path) -> None:
    """One silent scheduler is no reason to know nothing."""
    assert said(tmp_path, "max_unknown", "cooldown")["max_unknown"].ok
    assert said(tmp_path, "cooldown")["cooldown"].ok


def test_a_guard_whose_fact_cannot_be_had_refuses_with_the_reason(tmp_path: Path) -> None:
    """No cordons known is not no cordons; the guards beside it answer as ever."""
    results = said(tmp_path, "blast_radius", "owner", "max_unknown")
    assert {kind: result.ok for kind, result in results.items()} == {
        "blast_radius": False, "owner": False, "max_unknown": True,
    }  # fmt: skip
    assert results["owner"].sentence == (
        "cannot be told: who cordoned what: slurmctld does not answer"
    )
    assert results["blast_radius"].origin == "g.yaml:1"


def test_every_guard_declares_what_it_decides_by_and_every_fact_is_asked_for() -> None:
    """No fact is gathered for nobody, and no guard decides by nothing."""
    assert all(kind.needs for kind in GUARDS.values())
    assert needed_by(GuardSpec(name, {}, "") for name in GUARDS) == set(Fact)


def cordoned(folder: Path, ended: str = "ok") -> Path:
    """A run that cordoned n1, and how its journal says it ended."""
    context = fake_context(folder)
    prepared = asyncio.run(prepare(context, CORDON, None, {"nodes": "n1"}))
    run_dir = create_run(context, prepared, RunRequest(by="ann"))
    journal = Journal(run_dir)
    done: Mapping[str, Json] = {"step": "cordon", "ok": True, "out": {"cordoned": ["n1"]}}
    journal.append(EventType.RUN_STARTED, NOON, {"by": "ann"})
    journal.append(EventType.STEP_INTENT, NOON, {"step": "cordon", "do": {"nodes": ["n1"]}})
    journal.append(EventType.STEP_RESULT, NOON, done)
    journal.append(EventType.END, NOON, {"result": ended, "exit_code": 0})
    journal.close()
    past = PastRun(
        run=run_dir.name, playbook="cordon", taken=("n1",), result=RunState.OK, exit_code=0,
        ended_at=NOON,
    )  # fmt: skip
    save_result(run_dir, past)
    return run_dir


def test_a_guard_that_cannot_read_how_a_run_ended_refuses_and_names_it(tmp_path: Path) -> None:
    """Whether that run took a node is not known, so no node counts as untouched."""
    run_dir = cordoned(tmp_path, "paused_for_lunch")
    results = said(tmp_path, "cooldown", "max_unknown")
    assert {kind: result.ok for kind, result in results.items()} == {
        "cooldown": False, "max_unknown": True,
    }  # fmt: skip
    assert f"runs/{run_dir.name}" in results["cooldown"].sentence


@pytest.mark.parametrize("torn", [(RESULT,), (INPUTS,), (RESULT, INPUTS)])
def test_a_damaged_file_of_one_run_keeps_no_other_from_its_nodes(
    torn: Sequence[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The journal and the result say the same; when both are lost, the run is named instead."""
    run_dir = cordoned(tmp_path)
    for name in torn:
        (run_dir / name).write_text('{"run": 7')
    context = fake_context(tmp_path)
    prepared = asyncio.run(prepare(context, CORDON, None, {"nodes": "n2"}))
    results = {r.kind: r for r in prepared.plan.guards}
    lost = len(torn) == 2
    taken = 0 if lost else 1
    assert f"{taken} nodes taken" in results["blast_radius"].sentence
    assert ("R-0001 cannot be read" in results["blast_radius"].sentence) is lost
    assert (run_dir / f"{RESULT}.damaged-1").exists() is lost
    assert ("damaged" in caplog.text) is lost


@pytest.mark.parametrize(("after_s", "ok"), [(60, False), (-60, True)])
def test_wrong_results_of_a_burn_in_since_the_cordon_keep_a_node_out(
    after_s: int, ok: bool, tmp_path: Path
) -> None:
    """Whoever gave the node back since an older one said that it was repaired."""
    context = fake_context(tmp_path)
    asyncio.run(context.backend.cordon(["n1"], "brctl:R-0009", "V-8 Xid 79", NOON))
    with context.world.change() as data:
        data["computed_wrongly"] = {"n1": after_s, "n2": after_s}
    prepared = asyncio.run(prepare(context, UNCORDON, None, {"nodes": "n1"}))
    assert {r.kind: r.ok for r in prepared.plan.guards}["corruption"] is ok


def test_a_cordon_says_what_the_verdict_says_and_else_what_a_person_does(tmp_path: Path) -> None:
    """The guard `corruption` reads the class in it; whoever cordons by hand has other words."""
    context, verdict = fake_context(tmp_path), example_verdict()
    named = asyncio.run(prepare(context, CORDON, verdict)).plan.changes
    assert any(verdict.title in change.what for change in named)
    by_hand = asyncio.run(prepare(context, CORDON, None, {"nodes": "n1", "reason": "fan"}))
    assert 'schedulable -> cordoned "fan"' in {change.what for change in by_hand.plan.changes}
