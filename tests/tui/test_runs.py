"""A run is followed through its journal, and changes only after typed words in a dialog."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from brctl.journal.store import find_run
from brctl.tui.address import Address
from brctl.tui.app import BrctlApp
from brctl.tui.screens.dialogs import ConfirmDialog
from brctl.tui.session.state_reader import DiskStateReader
from tests.fakes.run_context import NOON
from tests.tui.conftest import engine_of, settled, shows, until
from tests.tui.screen_text import screen_text
from tests.tui.site import SiteEngine, make_site, site_app, site_verdict

SIZE = (110, 40)


def state_of(app: BrctlApp, run: str = "R-0001") -> str:
    assert app.facts is not None
    found = app.facts.run(run)
    return found.state if found else "none"


async def waiting_run(app: BrctlApp) -> None:
    """Start a run that nobody has approved, and open it when it waits."""
    engine = engine_of(app)
    await engine.start_unapproved(await engine.propose("V-1"))
    await until(lambda: state_of(app) == "waiting", "the gate")
    app.go(Address("runs", "R-0001"))
    engine.did.clear()


async def test_typed_words_start_the_run_and_it_is_followed_to_its_end(app: BrctlApp) -> None:
    """f, A, the words and enter: the node is swapped, and the screen has followed the journal."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("n", "f")
        await until(lambda: isinstance(app.screen, ConfirmDialog), "the dialog")
        await pilot.press("A", *"swap", "space", "1", "enter")
        await until(lambda: state_of(app) == "ok", "the end of the run")
        await shows(app, "ok       12 prove")
        assert app.view is not None
        assert app.view.address == Address("runs", "R-0001")
        world = engine_of(app).context.world.read()
        assert world["nodes"] == ["n1", "n2", "s1", "n4"]


async def test_the_dialog_says_what_the_fix_costs_and_what_takes_it_back(app: BrctlApp) -> None:
    """The lines of `fix -n`: somebody at the terminal decides by the same figures."""
    async with app.run_test(size=(120, 60), notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("n", "f")
        await until(lambda: isinstance(app.screen, ConfirmDialog), "the dialog")
        shown = screen_text(app)
        assert "time    at most " in shown
        lost = "lost    2 steps: it stands at step 40, the newest whole checkpoint is of step 38"
        assert lost in shown
        assert "standby 1 free afterwards" in shown
        assert "undo    until step `stop`: brctl play rollback RUN" in shown


@pytest.mark.parametrize("keys", [("enter",), ("escape",), ("q",), ("A", "y", "enter", "escape")])
async def test_the_dialog_starts_nothing_without_the_words(
    app: BrctlApp, keys: tuple[str, ...]
) -> None:
    """Enter cancels, and so do esc, q and wrong words."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("n", "f")
        await until(lambda: isinstance(app.screen, ConfirmDialog), "the dialog")
        assert app.focused is not None
        assert app.focused.id == "cancel"
        await pilot.press(*keys)
        await until(lambda: not isinstance(app.screen, ConfirmDialog), "the dialog to close")
        await pilot.pause(0.3)
        assert engine_of(app).did == ["propose V-1"]
        assert engine_of(app).context.world.read()["effects"] == []


async def test_wrong_words_are_refused_and_say_what_to_type(app: BrctlApp) -> None:
    """The dialog stays and shows the words again."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("n", "f")
        await until(lambda: isinstance(app.screen, ConfirmDialog), "the dialog")
        await pilot.press("A", *"swap", "enter")
        await shows(app, "type exactly `swap 1`, not `swap`")


async def test_a_waiting_run_says_so_and_is_approved_with_words(app: BrctlApp) -> None:
    """A opens the dialog with steps, guards and CLI line; the words let the run go on."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await waiting_run(app)
        await shows(app, "WAITING FOR YOU before stop")
        await shows(app, "GATE     6 stop")
        await pilot.press("A")
        await shows(app, "brctl play approve R-0001")
        await shows(app, "blast_radius")
        await pilot.press("A", *"swap", "space", "1", "enter")
        await until(lambda: state_of(app) == "ok", "the end of the run")
        assert engine_of(app).did == ["approve R-0001 swap 1"]


async def test_whose_yes_would_not_count_is_told_before_typing(app: BrctlApp) -> None:
    """The same rule as `play approve`: the dialog says why, and has nothing to type into."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await waiting_run(app)
        await shows(app, "WAITING FOR YOU")
        engine_of(app).refusal = "oncall is not in group leads"
        await pilot.press("A")
        await shows(app, "refused: oncall is not in group leads; somebody else: brctl play approve")
        assert isinstance(app.screen, ConfirmDialog)
        assert not app.screen.query("#words")
        await pilot.press("escape", "D")
        await shows(app, "brctl play deny R-0001")


async def test_a_denied_run_takes_back_what_it_did(app: BrctlApp) -> None:
    """D asks for the word deny; the cordon is undone."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await waiting_run(app)
        await shows(app, "WAITING FOR YOU")
        await pilot.press("D")
        await shows(app, "brctl play deny R-0001")
        await pilot.press("A", *"deny", "enter")
        await shows(app, "undone")
        await until(lambda: engine_of(app).context.world.read()["cordons"] == {}, "the uncordon")


async def test_a_waiting_run_is_rolled_back_with_its_name(app: BrctlApp) -> None:
    """U asks for the run's name."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await waiting_run(app)
        await shows(app, "WAITING FOR YOU")
        await pilot.press("u")
        await shows(app, "brctl play rollback R-0001")
        await pilot.press("A", *"R-0001", "enter")
        await until(lambda: state_of(app) == "rolled_back", "the rollback")


async def test_leaving_stops_no_run_and_a_second_viewer_sees_the_same(
    app: BrctlApp, tmp_path: Path
) -> None:
    """The run ends although the terminal that started it is gone; another one shows it."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("n", "f")
        await until(lambda: isinstance(app.screen, ConfirmDialog), "the dialog")
        await pilot.press("A", *"swap", "space", "1", "enter")
        await until(lambda: "start" in engine_of(app).did, "the start")
        await until(lambda: bool(app.facts and app.facts.runs), "the run's folder")
        await pilot.press("ctrl+q")
    settings = engine_of(app).settings
    reader = DiskStateReader(settings)
    await until(lambda: [r.state for r in reader.read().runs] == ["ok"], "the end of the run")
    second = site_app(tmp_path, settings, Address("runs", "R-0001"))
    async with second.run_test(size=SIZE) as pilot:
        await settled(pilot)
        await shows(second, "ok       12 prove")


async def test_read_only_shows_the_plan_and_refuses_to_start(tmp_path: Path) -> None:
    """In read-only mode f still explains, and has nowhere to type."""
    settings = replace(make_site(tmp_path, verdict=site_verdict()), readonly=True)
    app = site_app(tmp_path, settings, Address())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await shows(app, "read-only(")
        await pilot.press("n", "f")
        await shows(app, "this is read-only mode")
        assert not app.screen.query("#words")
        await pilot.press("A", *"swap", "space", "1", "enter")
        await pilot.pause(0.3)
        assert engine_of(app).did == ["propose V-1"]


async def test_a_guard_that_refuses_is_shown_with_its_way_out(tmp_path: Path) -> None:
    """A refused plan says number, limit and what to do instead, and cannot be started."""
    old = replace(site_verdict(), decided_at=NOON - timedelta(minutes=1))
    settings = make_site(tmp_path, verdict=old)
    engine = SiteEngine(tmp_path, settings)
    with engine.context.world.change() as data:
        data["still_true"] = False
    app = site_app(tmp_path, settings, Address())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("n", "f")
        await shows(app, "refused by verdict")
        await shows(app, "diagnose again")
        assert not app.screen.query("#words")


async def test_the_journal_is_shown_line_by_line(app: BrctlApp) -> None:
    """E turns to the journal and back."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await waiting_run(app)
        await shows(app, "WAITING FOR YOU")
        await pilot.press("e")
        await shows(app, "approval.asked")
        await pilot.press("escape")
        await shows(app, "GATE")


async def test_a_run_whose_process_died_is_called_lost(app: BrctlApp) -> None:
    """No END and no process: the screen says which command goes on."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await waiting_run(app)
        journal = find_run(engine_of(app).settings.state_dir, "R-0001") / "events.ndjson"
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(lines[:-1]))
        await until(lambda: state_of(app) == "lost", "the loss")
        await shows(app, "brctl play resume R-0001")


async def test_a_note_and_an_export_are_written(app: BrctlApp) -> None:
    """N adds a note to the time line, e writes the post-mortem as Markdown."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("5")
        await shows(app, "diagnosed")
        await pilot.press("n", *"RMA", "enter")
        await shows(app, "RMA")
        await pilot.press("e")
        await shows(app, "written:")
        written = (engine_of(app).settings.state_dir / "exports" / "V-1.md").read_text()
        assert "# Incident V-1" in written
        assert "| note | " in written
