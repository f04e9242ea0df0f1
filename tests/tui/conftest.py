"""A site per test, and the patience to wait for what workers do."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from textual.pilot import Pilot, WaitForScreenTimeout

from brctl.tui.app import BrctlApp
from tests.timeouts import TIMEOUT_S
from tests.tui.screen_text import screen_text
from tests.tui.site import SiteEngine, make_site, site_app, site_verdict

HOPS = 4
"""From the application to its screen, to a widget, and back with what that posts."""

HOP_S = 5.0
"""What is just being taken away never answers."""


@pytest.fixture(autouse=True)
def keys_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual takes a process that waits for a CPU for one that has done all it was asked."""
    press = Pilot.press

    async def press_and_follow(pilot: Pilot[object], *keys: str) -> None:
        for key in keys:
            await press(pilot, key)
            for _ in range(HOPS):
                if pilot.app.is_running:
                    with suppress(WaitForScreenTimeout):
                        await pilot._wait_for_screen(HOP_S)

    monkeypatch.setattr(Pilot, "press", press_and_follow)


async def until(holds: Callable[[], bool], what: str = "") -> None:
    """Wait until something holds; fails after TIMEOUT_S."""
    end = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < end, f"waited in vain for {what or holds}"
        await asyncio.sleep(0.02)


async def shows(app: BrctlApp, text: str) -> None:
    """Wait until the screen holds a text."""
    end = time.monotonic() + TIMEOUT_S
    while text not in screen_text(app):
        assert time.monotonic() < end, f"waited in vain for {text!r} on\n{screen_text(app)}"
        await asyncio.sleep(0.02)


async def settled(pilot: Pilot[None]) -> None:
    """Wait until the first facts are drawn."""
    app = pilot.app
    assert isinstance(app, BrctlApp)
    await until(lambda: app.facts is not None and "<= 5" in app.facts.guard, "the first facts")
    await pilot.pause()


def engine_of(app: BrctlApp) -> SiteEngine:
    """The engine behind the app, which remembers what it was asked."""
    assert isinstance(app.engine, SiteEngine)
    return app.engine


@pytest.fixture
def app(tmp_path: Path) -> BrctlApp:
    """The app on a site with one open verdict, on the fleet."""
    from brctl.tui.address import Address

    settings = make_site(tmp_path, verdict=site_verdict())
    return site_app(tmp_path, settings, Address())
