"""Pictures of the real app for the README: python -m tests.tui.screenshots [--fleet] [FOLDER].

The fleet and its jobs are a made-up state of 1,000 nodes (`made_up_fleet`; `--fleet` takes these
alone). Then it brings the lab up, trains, breaks a node, diagnoses and fixes it through the app
itself, and writes an SVG of each screen on the way.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from brctl.library.config import load_settings
from brctl.tui.address import Address
from brctl.tui.app import BrctlApp
from brctl.tui.screens.dialogs import ConfirmDialog
from brctl.tui.session.local_engine import LocalEngine
from brctl.tui.session.state_reader import DiskStateReader
from brctl.tui.widgets.palette import DARK
from tests.tui.conftest import until
from tests.tui.lab_site import broken_lab
from tests.tui.made_up_fleet import fleet_app, make

FOLDER = Path(__file__).with_name("screenshots")
SIZE = (110, 32)
FLEET_SIZE = (124, 30)
"""Two racks of 32 side by side, beside the list of what needs attention."""


def picture_of(app: BrctlApp, folder: Path, name: str) -> None:
    """What the terminal shows now."""
    text = app.export_screenshot(title=f"brctl tui: {name}")
    (folder / f"{name}.svg").write_text(text, encoding="utf-8")


async def take_fleet(folder: Path) -> None:
    """A thousand nodes, one of them bad, and a job that stands because of it."""
    with tempfile.TemporaryDirectory() as state:
        app = fleet_app(make(Path(state)))
        async with app.run_test(size=FLEET_SIZE) as pilot:
            await until(lambda: bool(app.facts and app.facts.troubled_jobs), "the stalled job")
            await pilot.press("n")
            await pilot.pause(0.3)
            picture_of(app, folder, "fleet")
            await pilot.press("7")
            await pilot.pause(0.3)
            picture_of(app, folder, "jobs")


async def take(config: Path, folder: Path) -> None:
    """Drive the app through the night and keep its pictures."""
    settings = load_settings(context="lab", config=config)
    app = BrctlApp(DiskStateReader(settings), LocalEngine(settings, print), Address(), theme=DARK)

    async with app.run_test(size=SIZE) as pilot:

        async def picture(name: str) -> None:
            await pilot.pause(0.3)
            picture_of(app, folder, name)

        await until(lambda: app.facts is not None and bool(app.facts.guard), "the first facts")
        app.run_command("dx lab-train")
        await until(lambda: bool(app.facts and app.facts.open_verdicts), "a verdict")
        await pilot.press("1", "n", "w")
        await picture("verdict")
        await pilot.press("1", "enter")
        await picture("node")
        await pilot.press("escape", "n", "f")
        await until(lambda: isinstance(app.screen, ConfirmDialog), "the plan")
        await picture("fix")
        await pilot.press("A", "y", "enter")
        await until(
            lambda: bool(app.facts and any(r.verdict_id for r in app.facts.runs)), "the run"
        )
        await until(
            lambda: bool(app.facts and all(r.state == "ok" for r in app.facts.runs)), "its end"
        )
        await picture("run")
        await pilot.press("5")
        await picture("incident")
        await pilot.press("6")
        await picture("standby")


def main(argv: list[str]) -> int:
    """Write the pictures."""
    folders = [Path(text) for text in argv if not text.startswith("-")]
    folder = folders[0] if folders else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(take_fleet(folder))
    if "--fleet" in argv:
        return 0
    with tempfile.TemporaryDirectory() as home, broken_lab(Path(home)) as environ:
        os.environ |= environ
        asyncio.run(take(Path(environ["BRCTL_LAB_DIR"]) / "config.yaml", folder))
    print("\n".join(str(path) for path in sorted(folder.glob("*.svg"))))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
