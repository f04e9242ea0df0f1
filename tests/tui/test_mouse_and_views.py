"""The mouse does what keys do, views are kept under names, and any size of terminal will do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from brctl.model.errors import ConfigError, UsageError
from brctl.tui.address import Address
from brctl.tui.app import BrctlApp
from brctl.tui.rows.row import Row, Tone
from brctl.tui.screens.fleet import FleetScreen
from brctl.tui.session.messages import WorkDone
from brctl.tui.session.saved_views import SavedViews
from brctl.tui.start import ViewRequest
from brctl.tui.widgets.grid import LABEL_WIDTH
from brctl.tui.widgets.header import screen_at, tabs_row
from brctl.tui.widgets.lines import GUTTER
from tests.timeouts import TIMEOUT_S
from tests.tui.conftest import engine_of, settled, shows, until
from tests.tui.screen_text import screen_text
from tests.tui.site import make_site, site_app, site_verdict

SIZE = (110, 32)
LEFT = LABEL_WIDTH + 1
"""Column of the first node of the heatmap: behind its label and the padding."""


async def test_clicks_choose_mark_and_open_nodes(app: BrctlApp) -> None:
    """A click is the cursor, ctrl marks, shift marks a range, two clicks are enter."""
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, FleetScreen)
        heatmap = app.screen.heatmap
        await pilot.click("#heatmap", offset=(LEFT + 1, 0))
        assert heatmap.name_here == "n2"
        await pilot.click("#heatmap", offset=(LEFT, 0), control=True)
        await pilot.click("#heatmap", offset=(LEFT + 2, 0), shift=True)
        assert heatmap.marks == {"n1", "n2", "n3"}
        await pilot.press("escape")
        await pilot.click("#heatmap", offset=(LEFT + 3, 0), times=2)
        await until(lambda: app.view is not None and app.view.address == Address("node", "n4"))


async def test_clicks_open_screens_sort_lists_and_press_keys(app: BrctlApp) -> None:
    """Tabs, titles of columns and the keys of the footer are all there to be clicked."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        tabs = tabs_row("fleet").text
        await pilot.click("#tabs", offset=(tabs.index("Verdicts"), 0))
        await shows(app, "EVIDENCE")
        titles = screen_text(app).splitlines()[3]
        column = titles.index("CONF") - GUTTER
        await pilot.click("#list", offset=(column + GUTTER, 0))
        await shows(app, "sorted by CONF")
        await pilot.click("#list", offset=(column + GUTTER, 0))
        await shows(app, "sorted by CONF, last first")
        hints = screen_text(app).splitlines()
        row = next(n for n, line in enumerate(hints) if " x diagnose" in line)
        await pilot.click(offset=(hints[row].index(" x diagnose") + 2, row))
        await until(lambda: "diagnose demo" in engine_of(app).did, "a diagnosis")
    app.handle_work_done(WorkDone("too late", "verdicts"))  # Its screens are gone by now.
    assert app.screen_stack == []


def test_a_click_beside_the_tabs_opens_nothing() -> None:
    """Only a tab is a tab."""
    tabs = tabs_row("runs", "FROZEN (p)")
    assert screen_at(tabs, tabs.text.index("Jobs")) == 7
    assert screen_at(tabs, 0) == 0
    assert screen_at(tabs, len(tabs.text)) == 0
    assert screen_at(Row((("brctl ", Tone.HEAD),)), 3) == 0


async def test_a_view_is_kept_and_opened_again(tmp_path: Path) -> None:
    """`:save` writes it, `:view` and `brctl tui --view` open it, `:forget` forgets it."""
    saved = SavedViews(tmp_path / "home" / "views.yaml")
    app = site_app(tmp_path, make_site(tmp_path), Address(filter="@rack:r2"), saved=saved)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        app.run_command("save night")
        await shows(app, "brctl tui --view night")
        await pilot.press("3")
        app.run_command("view night")
        await pilot.pause()
        assert app.view is not None
        assert app.view.address == Address(filter="@rack:r2")
        request = ViewRequest(saved="night", keys_file=tmp_path / "home" / "keys.yaml")
        assert request.address == Address(filter="@rack:r2")
        app.run_command("view")
        await shows(app, "brctl tui fleet --filter @rack:r2")
        await pilot.press("escape")
        app.run_command("forget night")
        await until(lambda: saved.all() == {}, "an empty file")


@pytest.mark.parametrize(
    ("text", "mistake"),
    [("views: {a: rm -rf}", "no view of brctl tui"), ("views: {a: 5}", "a"), ("view: {}", "view")],
)
def test_a_file_of_views_that_is_wrong_says_where(tmp_path: Path, text: str, mistake: str) -> None:
    """A view is words of `brctl tui`; nothing else in the file is ever run."""
    path = tmp_path / "views.yaml"
    path.write_text(f"apiVersion: brctl.dev/v1\nkind: Views\n{text}\n")
    with pytest.raises(ConfigError, match=mistake):
        SavedViews(path).all()


def test_a_name_of_a_view_is_a_name(tmp_path: Path) -> None:
    """No path, no flag, no control characters; one that is not kept is not opened."""
    views = SavedViews(tmp_path / "views.yaml")
    for name in ("../x", "-x", "", "a\nb", "x" * 41):
        with pytest.raises(UsageError):
            views.save(name, Address())
    with pytest.raises(UsageError, match="no saved view `night`"):
        views.one("night")


@pytest.mark.parametrize("size", [(80, 24), (60, 12), (30, 8), (12, 4)])
async def test_a_small_terminal_is_drawn_and_answers(tmp_path: Path, size: tuple[int, int]) -> None:
    """Every screen draws at any size, and the way out works."""
    app = site_app(tmp_path, make_site(tmp_path, verdict=site_verdict()), Address())
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        await pilot.resize_terminal(*size)
        for key in ("2", "3", "4", "5", "6", "7", "1"):
            await pilot.press(key)
            await pilot.pause()
        lines = screen_text(app).splitlines()
        assert len(lines) <= size[1]
        assert lines[0].startswith("brctl [1 Fle"[: size[0]])
        assert size[1] < 8 or any(".wX?ss" in line for line in lines)
        await pilot.press("q")
        await until(lambda: not app.is_running, "the app to leave")


@pytest.mark.parametrize("closed", ["stdin", "stdout"])
def test_without_a_terminal_it_says_so_at_once(tmp_path: Path, closed: str) -> None:
    """From cron or in a pipe: one sentence, the command that prints instead, exit 64."""
    make_site(tmp_path)
    terminal, other = os.openpty()
    streams = {"stdin": terminal, "stdout": terminal, closed: subprocess.DEVNULL}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "brctl", "tui", "runs", "--config",
             str(tmp_path / "config.yaml")],
            stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S, check=False, **streams,  # type: ignore[call-overload]  # two of its keywords
        )  # fmt: skip
    finally:
        os.close(terminal)
        os.close(other)
    assert done.returncode == 64
    assert "needs a terminal" in done.stderr
    assert "try:   brctl tui runs --once" in done.stderr
