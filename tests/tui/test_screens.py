"""Each screen as plain text, compared with the text a person has read; `--update` is a review."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.tui.address import Address
from brctl.tui.app import BrctlApp
from brctl.tui.rows.row import cut, row
from brctl.tui.session import state_reader
from brctl.tui.widgets.palette import LIGHT, SIXTEEN
from tests.tui.conftest import settled, shows
from tests.tui.screen_text import screen_text
from tests.tui.site import make_site, site_app, site_verdict

GOLDEN = Path(__file__).parents[1] / "golden" / "tui"
VIEWS = {
    "fleet": ((110, 30), ["n"], "needs attention"),
    "fleet-80x24": ((80, 24), ["n"], "needs attention"),
    "fleet-250": ((250, 30), [], "needs attention"),
    "verdict": ((110, 34), ["2"], "EVIDENCE"),
    "verdict-raw": ((110, 24), ["2", "e"], "fallen off the bus"),
    "node-health": ((110, 24), ["n", "enter"], "[Health]"),
    "node-gpus": ((110, 24), ["n", "enter", "tab"], "[GPUs]"),
    "runs-none": ((110, 20), ["3"], "no run yet"),
    "incident": ((110, 24), ["5"], "diagnosed"),
    "standby": ((110, 20), ["6"], "standby"),
    "actions": ((110, 34), ["n", "a"], "actions"),
    "help": ((110, 70), ["question_mark"], "keys"),
}


def compare(name: str, text: str) -> None:
    """Against the golden file; BRCTL_UPDATE_GOLDEN=1 writes it for a person to look at."""
    path = GOLDEN / name
    if os.environ.get("BRCTL_UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == path.read_text(encoding="utf-8"), f"{path} differs"


@pytest.mark.parametrize("name", VIEWS)
async def test_a_screen_is_as_it_was_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What changes here is what an operator sees, in words and, as a picture, in colours.

    The pictures hold for the Textual and Rich that pyproject.toml pins for the tests.
    """
    monkeypatch.setattr(state_reader, "person", lambda: "oncall")
    size, keys, sign = VIEWS[name]
    app = site_app(tmp_path, make_site(tmp_path, verdict=site_verdict()), Address())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press(*keys)
        await shows(app, sign)
        await pilot.pause(0.3)
        compare(f"{name}.txt", screen_text(app))
        compare(f"{name}.svg", app.export_screenshot(title=name))


@pytest.mark.parametrize("theme", [LIGHT, SIXTEEN])
async def test_every_theme_shows_the_same_letters(tmp_path: Path, theme: str) -> None:
    """Colours differ, text does not."""
    settings = make_site(tmp_path, verdict=site_verdict())
    texts = []
    for wanted in (theme, "brctl-dark"):
        app = site_app(tmp_path, settings, Address(), theme=wanted)
        async with app.run_test(size=(100, 28)) as pilot:
            await settled(pilot)
            for key in ("2", "3", "5", "1"):
                await pilot.press(key)
            await pilot.pause(0.3)
            texts.append(screen_text(app))
    assert texts[0] == texts[1]


async def test_without_colour_the_states_are_still_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NO_COLOR leaves letters and words."""
    monkeypatch.setenv("NO_COLOR", "1")
    app: BrctlApp = site_app(tmp_path, make_site(tmp_path, verdict=site_verdict()), Address())
    async with app.run_test(size=(100, 28)) as pilot:
        await settled(pilot)
        await shows(app, ".wX?ss")
        assert app.no_color


async def test_old_data_says_so(tmp_path: Path) -> None:
    """Beyond ten minutes the age is marked, in words as well."""
    settings = make_site(tmp_path)
    app = site_app(tmp_path, settings, Address())
    later = app.clock().replace(hour=13)
    app.clock = lambda: later
    async with app.run_test(size=(110, 28)) as pilot:
        await settled(pilot)
        await shows(app, "(old)")


async def test_one_open_verdict_is_what_the_program_opens_on(tmp_path: Path) -> None:
    """With exactly one open verdict nobody has to search; with two it is the fleet."""
    settings = make_site(tmp_path, verdict=site_verdict())
    app = site_app(tmp_path, settings, None)
    async with app.run_test(size=(110, 28)) as pilot:
        await settled(pilot)
        await shows(app, "EVIDENCE")
        assert app.view is not None
        assert app.view.address == Address("verdicts", "V-1")


def test_a_long_list_says_what_it_leaves_out() -> None:
    """500 of 600 rows are mounted, and the last line says so."""
    rows = cut([row(str(number), key=f"n:{number}") for number in range(600)])
    assert len(rows) == 501
    assert rows[-1].text == "500 of 600, / to filter"


def test_a_verdict_is_never_lost_between_facts(tmp_path: Path) -> None:
    """The address of a verdict that is not there shows nothing else in its place."""
    settings = make_site(tmp_path, verdict=replace(site_verdict(), id="V-8"))
    facts = site_app(tmp_path, settings).reader.read()
    assert facts.verdict("V-1") is None
    assert facts.verdict("V-8") is not None
