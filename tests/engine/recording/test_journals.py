"""The runs that a verdict led to are in its file: their journals, and how those stood."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.application.incident_redaction import redact
from brctl.engine.recording.archive import read
from brctl.engine.recording.export import Wanted, export
from brctl.engine.recording.reopened import reopened
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import create_run
from brctl.engine.runs.run_files import RunRequest
from brctl.journal.store import Journal, run_dirs
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.runs.event import EventType
from brctl.view.recorded.pseudonyms import Profile
from tests.fakes.recorded_site import RecordedSite
from tests.fakes.run_context import NOON, example_verdict, fake_context


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A look, and a run that was created for its verdict."""
    folder = tmp_path_factory.mktemp("taken")
    context = fake_context(folder)
    told = RecordedSite(context.state_dir, "gpu-lost").diagnose().verdicts[0]
    playbook = load_playbook(shipped_dir("playbooks") / "swap-and-resume.yaml")
    verdict = replace(example_verdict(), id=told.id)
    prepared = asyncio.run(prepare(context, playbook, verdict))
    journal = Journal(create_run(context, prepared, RunRequest(by="oncall-ann")))
    journal.append(EventType.NOTE, NOON, {"text": "n3 is to go", "by": "oncall-ann"})
    journal.close()
    path = folder / "x.brctl.tar.zst"
    path.write_bytes(export(context.state_dir, Wanted(), {}))
    return path


def test_a_run_is_in_the_file_with_the_state_of_its_journal(taken: Path) -> None:
    file = read(taken)
    assert "runs/R-0001/events.ndjson" in file.members
    assert "runs/R-0001/plan.json" in file.members
    assert file.manifest.journals["R-0001"].startswith("1 lines, sound, head ")


def test_the_screens_find_the_run_of_a_reopened_incident(taken: Path) -> None:
    with reopened(taken) as incident:
        (folder,) = run_dirs(incident.settings.state_dir)
        run = read_run(folder)
    assert (run.by, run.damage) == ("oncall-ann", ())


def test_who_asked_for_a_run_has_a_pseudonym_too(taken: Path, tmp_path: Path) -> None:
    sent = tmp_path / "y"
    redact(taken, tmp_path / "home", Profile.PUBLIC, sent)
    file = read(sent)
    assert b"oncall-ann" in read(taken).members["runs/R-0001/request.json"]
    assert not any(b"oncall-ann" in raw for raw in file.members.values())
    assert file.manifest.journals == read(taken).manifest.journals
