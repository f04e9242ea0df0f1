"""From any screen esc five times reaches the top, and nothing on disk has changed."""

import asyncio
import hashlib
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from brctl.tui.address import Address
from brctl.tui.app import BrctlApp
from brctl.tui.screens.fleet import FleetScreen
from tests.tui.conftest import settled, until
from tests.tui.site import make_site, site_app, site_verdict

HARMLESS = st.sampled_from(
    ["1", "2", "3", "4", "5", "6", "n", "N", "enter", "d", "w", "t", "e", "K", "a", "question_mark",
     "slash", "colon", "space", "tab", "z", "m", "minus", "left_square_bracket", "down", "up", "G",
     "g", "p", "y", "Y", "A", "D", "u", "f", "j", "k", "right", "pagedown"]
)  # fmt: skip
"""Every key but those that look at nodes, lend the terminal or leave."""


def digest(folder: Path) -> str:
    """All files of a site, names and bytes."""
    found = hashlib.sha256()
    # SQLite's own side files come and go with its readers; the database itself is compared.
    files = (p for p in folder.rglob("*") if p.is_file() and not p.name.endswith(("-wal", "-shm")))
    for path in sorted(files):
        found.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return found.hexdigest()


def is_at_the_top(app: BrctlApp) -> bool:
    return isinstance(app.screen, FleetScreen) and app.screen.address == Address()


async def press_and_escape(folder: Path, keys: list[str]) -> None:
    app = site_app(folder, make_site(folder, verdict=site_verdict()), Address())
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        before = digest(folder)
        await pilot.press(*keys)
        await pilot.press(*["escape"] * 5)
        await until(lambda: is_at_the_top(app), f"the whole fleet after {keys}")
        assert digest(folder) == before, keys


@settings(max_examples=8)
@given(st.lists(HARMLESS, min_size=1, max_size=8))
def test_escape_five_times_reaches_the_top_and_nothing_changed(keys: list[str]) -> None:
    """Whatever was pressed before, five escapes show the whole fleet; no file is different."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(press_and_escape(Path(folder), keys))
