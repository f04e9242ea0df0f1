"""When files are damaged, missing or half written the screen says so and shows the rest."""

from pathlib import Path

from brctl.engine.incidents.verdict_store import StoredVerdict
from brctl.journal.store import find_run
from brctl.tui.address import Address
from brctl.tui.app import BrctlApp
from brctl.tui.session.state_reader import DiskStateReader
from tests.tui.conftest import engine_of, settled, shows, until
from tests.tui.screen_text import screen_text
from tests.tui.site import make_site, site_app, site_verdict

SIZE = (110, 30)


async def test_an_unreadable_verdict_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    """One damaged file is one sentence in red; nothing else disappears."""
    settings = make_site(tmp_path, verdict=site_verdict())
    (settings.state_dir / "verdicts" / "V-9.json").write_text("{half")
    app = site_app(tmp_path, settings, Address())
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        await shows(app, "! cannot read verdict V-9")
        await shows(app, "V-1 MEDIUM")


async def test_a_damaged_sweep_leaves_its_nodes_unswept_not_well(tmp_path: Path) -> None:
    """What cannot be read is never shown as ok."""
    settings = make_site(tmp_path)
    for path in (settings.state_dir / "sweeps").iterdir():
        path.write_bytes(path.read_bytes()[:200])
    app = site_app(tmp_path, settings, Address())
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        await shows(app, "6 not swept")
        await shows(app, "cannot read sweeps: none of 1 files")
        await shows(app, "never swept: press r")


async def test_an_empty_state_folder_shows_the_inventory(tmp_path: Path) -> None:
    """Before the first sweep every node is there, as not swept."""
    app = site_app(tmp_path, make_site(tmp_path, swept=False), Address())
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        await shows(app, "------")


async def test_a_missing_inventory_is_a_sentence_not_a_crash(tmp_path: Path) -> None:
    """The program stays usable when its inventory cannot be read."""
    settings = make_site(tmp_path, verdict=site_verdict())
    (tmp_path / "inventory.yaml").unlink()
    app = site_app(tmp_path, settings, Address())
    async with app.run_test(size=SIZE) as pilot:
        # The engine cannot open this site either, so no guard will ever be known.
        await until(lambda: app.facts is not None, "the first facts")
        await shows(app, "cannot read inventory")
        await pilot.press("2")
        await shows(app, "gpu-lost")


async def test_a_half_written_line_of_a_journal_is_waited_for(app: BrctlApp) -> None:
    """A torn last line is said aloud and the run before it is shown."""
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        engine = engine_of(app)
        await engine.start_unapproved(await engine.propose("V-1"))
        await until(lambda: bool(app.facts and app.facts.runs[0:] and app.facts.runs[0].waiting))
        journal = find_run(engine.settings.state_dir, "R-0001") / "events.ndjson"
        with journal.open("ab") as stream:
            stream.write(b'{"type":"step.int')
        await pilot.press("3")
        await shows(app, "never finished")
        await shows(app, "R-0001")


def test_a_run_folder_that_is_damaged_is_listed_as_unreadable(tmp_path: Path) -> None:
    """It is in the list with its name, and the trouble is named."""
    settings = make_site(tmp_path)
    (settings.state_dir / "runs" / "R-0007").mkdir(parents=True)
    facts = DiskStateReader(settings).read()
    assert [(run.name, run.state) for run in facts.runs] == [("R-0007", "unreadable")]
    assert any("R-0007" in trouble for trouble in facts.troubles)


async def test_a_tiny_terminal_and_back_keeps_the_view(app: BrctlApp) -> None:
    """20 by 5 draws something, and the old size draws what it drew before."""
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        await pilot.press("n")
        before = screen_text(app)
        await pilot.resize_terminal(20, 5)
        await until(lambda: len(screen_text(app).splitlines()) <= 5, "the tiny picture")
        await pilot.resize_terminal(*SIZE)
        await until(lambda: screen_text(app) == before, "the old picture")


async def test_at_eighty_columns_the_list_moves_under_the_map(app: BrctlApp) -> None:
    """80 by 24 shows heatmap, list and footer."""
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        lines = screen_text(app).splitlines()
        heat = next(i for i, line in enumerate(lines) if ".wX?ss" in line)
        attention = next(i for i, line in enumerate(lines) if "needs attention" in line)
        assert attention > heat
        assert all(len(line) <= 80 for line in lines)


async def test_an_answer_of_the_scheduler_that_fails_is_shown(app: BrctlApp) -> None:
    """A scheduler that does not answer is a message; the screen goes on."""

    async def fails() -> None:
        raise OSError("slurmctld: connection refused")

    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        app.engine.placement = fails  # type: ignore[method-assign, assignment]  # it breaks now
        await pilot.press("ctrl+r")
        await shows(app, "connection refused")


def test_stored_verdicts_are_what_the_engine_stored(tmp_path: Path) -> None:
    """The state reader reads what `brctl dx` writes."""
    settings = make_site(tmp_path, verdict=site_verdict())
    (stored,) = DiskStateReader(settings).read().verdicts
    assert isinstance(stored, StoredVerdict)
    assert stored.verdict == site_verdict()
