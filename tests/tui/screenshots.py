"""Pictures of the real app on the lab, for the README: python -m tests.tui.screenshots [FOLDER].

Brings the lab up, trains, breaks a node, diagnoses and fixes it through the app itself, and writes
an SVG of each screen on the way.
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

FOLDER = Path(__file__).with_name("screenshots")
SIZE = (110, 32)


async def take(config: Path, folder: Path) -> None:
    """Drive the app through the night and keep its pictures."""
    settings = load_settings(context="lab", config=config)
    app = BrctlApp(DiskStateReader(settings), LocalEngine(settings, print), Address(), theme=DARK)

    async with app.run_test(size=SIZE) as pilot:

        async def picture(name: str) -> None:
            await pilot.pause(0.3)
            path = folder / f"{name}.svg"
            path.write_text(app.export_screenshot(title=f"brctl tui: {name}"), encoding="utf-8")

        await until(lambda: app.facts is not None and bool(app.facts.guard), "the first facts")
        app.run_command("dx lab-train")
        await until(lambda: bool(app.facts and app.facts.open_verdicts), "a verdict")
        await pilot.press("1", "n")
        await picture("fleet")
        await pilot.press("w")
        await picture("verdict")
        await pilot.press("1", "enter")
        await picture("node")
        await pilot.press("escape", "n", "f")
        await until(lambda: isinstance(app.screen, ConfirmDialog), "the plan")
        await picture("fix")
        await pilot.press("A", *"swap", "space", "1", "enter")
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
    folder = Path(argv[0]) if argv else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, broken_lab(Path(home)) as environ:
        os.environ |= environ
        asyncio.run(take(Path(environ["BRCTL_LAB_DIR"]) / "config.yaml", folder))
    print("\n".join(str(path) for path in sorted(folder.glob("*.svg"))))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
