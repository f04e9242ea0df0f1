"""A standby that dies between its admission and the start of its rank: another takes its place."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import create_run
from brctl.engine.runs.run_files import RunRequest
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.job import Job
from tests.fakes.file_backend import FileBackend
from tests.fakes.run_context import FakeContext, example_verdict, fake_context
from tests.fakes.run_here import carry

SWAP = load_playbook(shipped_dir("playbooks") / "swap-and-resume.yaml")


class DyingStandbys(FileBackend):
    """Nodes of a list die at the moment they are put into the job."""

    mortal: tuple[str, ...] = ()

    async def replace_nodes(self, job: Job, swaps: Mapping[str, str]) -> Job:
        after = await super().replace_nodes(job, swaps)
        with self._world.change() as data:
            data["dead"] += [node for node in swaps.values() if node in self.mortal]
        return after


def swapped(folder: Path, *mortal: str) -> tuple[FakeContext, Path, ExitCode]:
    context = fake_context(folder)
    backend = DyingStandbys(context.world)
    backend.mortal = mortal
    context = replace(context, backend=backend)
    prepared = asyncio.run(prepare(context, SWAP, example_verdict()))
    run_dir = create_run(context, prepared, RunRequest(by="oncall"))
    return context, run_dir, carry(context, run_dir)


def test_another_standby_is_taken_and_the_dead_one_stays_out(tmp_path: Path) -> None:
    context, run_dir, code = swapped(tmp_path, "s1")
    assert code is ExitCode.OK
    data = context.world.read()
    assert data["nodes"] == ["n1", "n2", "s2", "n4"]
    assert set(data["cordons"]) == {"n3", "s1"}
    assert data["reservations"] == {}
    assert "s1 -> s2, for it died" in read_run(run_dir).record.steps["restart"].say


def test_when_no_other_is_left_the_run_says_both(tmp_path: Path) -> None:
    """Why the start failed, and that nobody can take the place."""
    _, run_dir, code = swapped(tmp_path, "s1", "s2")
    assert code is ExitCode.NEEDS_HUMAN
    why = read_run(run_dir).record.steps["restart"].error
    assert "s2: no answer" in why
    assert "no other node is free" in why
