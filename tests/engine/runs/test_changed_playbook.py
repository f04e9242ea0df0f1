"""What people approved is what runs: a playbook that was edited meanwhile does nothing."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import answer, create_run, resume, roll_back
from brctl.engine.runs.run_files import PLAYBOOK, RunRequest
from brctl.engine.runs.wait import due_at
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.errors import GuardError
from brctl.model.exit_codes import ExitCode
from tests.fakes.run_context import FakeContext, example_verdict, fake_context
from tests.fakes.run_here import carry

SWAP = load_playbook(shipped_dir("playbooks") / "swap-and-resume.yaml")
ANN = RunRequest(by="ann")


def planned(folder: Path) -> tuple[FakeContext, Path]:
    """A run that will ask one person, because nobody is sure."""
    context = fake_context(folder)
    unsure = replace(example_verdict(), probability=0.7)
    context.verdicts.known = unsure
    prepared = asyncio.run(prepare(context, SWAP, unsure))
    return context, create_run(context, prepared, RunRequest(by="oncall"))


def edit(run_dir: Path) -> None:
    """Another grace than the one in the plan that was shown."""
    path = run_dir / PLAYBOOK
    text = path.read_text()
    assert "default: 30s" in text
    path.write_text(text.replace("default: 30s", "default: 1s"))


def test_a_playbook_edited_after_the_approval_does_not_run(tmp_path: Path) -> None:
    context, run_dir = planned(tmp_path)
    assert carry(context, run_dir) is ExitCode.WAITING
    answer(context, run_dir, "bob", yes=True)
    edit(run_dir)
    before = context.world.read()
    with pytest.raises(GuardError, match="was changed after the run was planned"):
        carry(context, run_dir)
    assert context.world.read() == before
    assert any("was changed after" in sentence for sentence in read_run(run_dir).damage)


def test_a_playbook_edited_before_the_run_began_does_not_run(tmp_path: Path) -> None:
    """Then the plan says which text it was."""
    context, run_dir = planned(tmp_path)
    edit(run_dir)
    with pytest.raises(GuardError, match="was changed after the run was planned"):
        carry(context, run_dir)
    assert context.world.read()["effects"] == []


def test_nobody_can_approve_resume_or_take_back_what_was_edited(tmp_path: Path) -> None:
    """Its way back is part of the text; with the old text all of that works again."""
    context, run_dir = planned(tmp_path)
    assert carry(context, run_dir) is ExitCode.WAITING
    text = (run_dir / PLAYBOOK).read_text()
    edit(run_dir)
    with pytest.raises(GuardError, match="was changed"):
        answer(context, run_dir, "bob", yes=True)
    for continue_run in (resume, roll_back):
        with pytest.raises(GuardError, match="was changed"):
            asyncio.run(continue_run(run_dir, ANN, ("true",)))
    assert due_at(run_dir) is None
    (run_dir / PLAYBOOK).write_text(text)
    answer(context, run_dir, "bob", yes=True)
    assert carry(context, run_dir) is ExitCode.OK
