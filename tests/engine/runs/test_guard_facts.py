"""A guard is told what it declares and nothing else; what cannot be had refuses."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.backends.contract import Cordon
from brctl.engine.runs.guard_facts import Guarding
from brctl.engine.runs.run_files import RESULT, RunInputs, save_result
from brctl.journal.store import new_run
from brctl.library.guards import SiteGuards
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.errors import UnavailableError
from brctl.model.runs.plan import GuardResult
from brctl.model.runs.playbook import GuardSpec, Json
from brctl.model.runs.result import PastRun, RunState
from brctl.playbook.guard_facts import Fact
from brctl.playbook.guards import GUARDS, needed_by
from tests.fakes.file_backend import FileBackend
from tests.fakes.run_context import NOON, fake_context

CORDON = load_playbook(shipped_dir("playbooks") / "cordon.yaml")


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
    checked = Guarding(context, CORDON).check(inputs, {"inputs": {}}, ("n1",), set(kinds))
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


@pytest.mark.parametrize(
    ("key", "value"), [("run", 7), ("result", "paused_for_lunch"), ("ended_at", "2026-07-05T12:00")]
)
def test_a_guard_that_cannot_read_a_past_run_refuses_and_names_the_file(
    key: str, value: Json, tmp_path: Path
) -> None:
    """Whether that run took a node is not known, so no node counts as untouched."""
    run_dir = new_run(fake_context(tmp_path).state_dir)
    past = PastRun(
        run=run_dir.name, playbook="cordon", taken=("n1",), result=RunState.OK, exit_code=0,
        ended_at=NOON,
    )  # fmt: skip
    save_result(run_dir, past)
    whole = json.loads((run_dir / RESULT).read_text())
    (run_dir / RESULT).write_text(json.dumps({**whole, key: value}))
    results = said(tmp_path, "cooldown", "max_unknown")
    assert {kind: result.ok for kind, result in results.items()} == {
        "cooldown": False, "max_unknown": True,
    }  # fmt: skip
    assert f"{run_dir.name}/{RESULT}" in results["cooldown"].sentence
