"""A recorded incident on the screens: what it was then, and nothing that could be done about it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.application.incident_files import told_again
from brctl.engine.recording.archive import pack, packed_again
from brctl.engine.recording.contents import looks_in
from brctl.engine.recording.export import Wanted, export
from brctl.engine.recording.look import encode
from brctl.engine.recording.look_members import look_name
from brctl.engine.recording.reopened import reopened
from brctl.model.errors import ConfigError, UsageError
from brctl.tui.session.recorded_engine import RecordedEngine
from brctl.tui.start import ViewRequest, print_once
from tests.fakes.recorded_site import RecordedSite


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two looks of a site with a lost GPU, in one file."""
    folder = tmp_path_factory.mktemp("taken")
    site = RecordedSite(folder / "state", "gpu-lost")
    site.diagnose()
    site.diagnose()
    path = folder / "x.brctl.tar.zst"
    path.write_bytes(export(folder / "state", Wanted(), {}))
    return path


def test_the_screens_show_it_as_it_was_when_it_was_recorded(taken: Path) -> None:
    """Read-only, at the time of its newest look, in a state that goes with it."""
    with reopened(taken) as incident:
        text = print_once(incident.settings, ViewRequest(), incident)
        verdicts = print_once(incident.settings, ViewRequest("verdicts"), incident)
        state = incident.settings.state_dir
    assert "read-only" in text
    assert "X n3 a GPU fell off the bus" in text
    assert "data 0.0 s old" in text
    assert "2026-07-05 03:02" in verdicts
    assert not state.exists()


def test_it_is_told_as_dx_told_it(taken: Path) -> None:
    page = told_again(taken)
    assert page.exit_code == 2
    assert "gpu-lost  n3" in page.text
    assert page.next[0] == f"brctl tui --replay {taken}"


def test_the_persons_own_names_for_tab_stay_as_they_are(
    taken: Path, clean_environment: Path
) -> None:
    with reopened(taken) as incident:
        print_once(incident.settings, ViewRequest(), incident)
    assert not list(clean_environment.rglob("completion*.json"))


def test_the_newest_look_is_judged_by_the_rules_its_site_had_then(
    taken: Path, tmp_path: Path
) -> None:
    """A rule that was gone before the second look of a file judges the first alone."""
    file, looks = looks_in(taken)
    older, newest = sorted((one.look for one in looks), key=lambda look: look.clock[0])
    older = replace(older, site={"rules.d/x.yaml": "kind: Nonsense"})
    path = tmp_path / "x.brctl.tar.zst"
    path.write_bytes(packed_again(file, {look_name(older.id): encode(older)}))
    with reopened(path) as incident:
        assert incident.newest.verdicts == newest.verdicts
        (site,) = incident.settings.library_dirs
        assert list(site.iterdir()) == []


def test_nothing_is_asked_and_nothing_changed() -> None:
    engine = RecordedEngine(None)
    asked: list[Callable[[], Awaitable[object]]] = [
        engine.look_at_jobs,
        lambda: engine.diagnose(["n1"], ""),
        lambda: engine.propose("V-1"),
        lambda: engine.approve("R-1", "y"),
        lambda: engine.deny("R-1"),
        lambda: engine.rollback("R-1"),
        lambda: engine.in_terminal(["run", "reboot"]),
        lambda: engine.sweep(["n1"], lambda _: None),
    ]
    for ask in asked:
        with pytest.raises(UsageError, match="recorded incident"):
            asyncio.run(_await(ask()))
    assert engine.why_not_approve("R-1")


async def _await(asked: Awaitable[object]) -> object:
    return await asked


def test_a_file_without_a_look_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(pack({}, made_by="0", looks=(), redaction={}, cuts=()))
    with pytest.raises(ConfigError, match="holds no look"), reopened(path):
        pass
