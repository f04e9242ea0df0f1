"""Open the terminal interface, or print one of its views and leave."""

import asyncio
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from brctl.library.config import Settings
from brctl.library.strict_yaml import load_document
from brctl.model.errors import ConfigError, UsageError, did_you_mean
from brctl.tui.address import Address
from brctl.tui.session.engine_client import EngineClient, SchedulerState
from brctl.tui.session.saved_views import SavedViews

if TYPE_CHECKING:
    from brctl.engine.recording.reopened import ReopenedIncident
    from brctl.tui.session.state_reader import DiskStateReader


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """What the command line asks of the interface.

    Attributes:
        view: A view, or None for what needs attention.
        saved: Name of a saved view, "" for none; item and filter of the request go before its own.
        look_every_s: Between two looks at the jobs; 0 for none.
        keys_file: keys.yaml, which need not exist; views.yaml lies beside it.
    """

    view: str | None = None
    item: str = ""
    filter: str = ""
    sort: str = ""
    saved: str = ""
    look_every_s: float = 15.0
    mouse: bool = True
    ascii_only: bool = False
    light: bool = False
    fps: int = 60
    keys_file: Path | None = None

    @property
    def address(self) -> Address | None:
        """The view that was asked for; None opens what needs attention."""
        if self.saved:
            return self._opened(self.views.one(self.saved) if self.views else Address())
        if self.view is None and not self.filter and not self.sort:
            return None
        return Address(self.view or "fleet", self.item, self.filter, self.sort)

    def _opened(self, kept: Address) -> Address:
        return replace(
            kept,
            item=self.item or kept.item,
            filter=self.filter or kept.filter,
            sort=self.sort or kept.sort,
        )

    @property
    def views(self) -> SavedViews | None:
        """Where saved views are kept; None where nobody says."""
        return SavedViews(self.keys_file.with_name("views.yaml")) if self.keys_file else None


def run_tui(
    settings: Settings, request: ViewRequest, recorded: "ReopenedIncident | None" = None
) -> None:
    """Run until the person leaves; no run of a playbook depends on it.

    A recorded incident is shown as it was when its newest look ended, and only shown.

    Raises:
        UsageError: Nobody sits there: what would be drawn goes nowhere, and no key ever comes.
    """
    address = request.address
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        shown = shlex.join(["brctl", "tui", *(address or Address()).words(), "--once"])
        raise UsageError("brctl tui needs a terminal on stdin and stdout", hint=shown)
    # Textual reads both when it is imported.
    os.environ["TEXTUAL_FPS"] = str(request.fps)
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    no_color = os.environ.get("NO_COLOR")
    from brctl.tui.app import BrctlApp
    from brctl.tui.session.local_engine import LocalEngine
    from brctl.tui.session.messages import WorkFailed
    from brctl.tui.session.recorded_engine import RecordedEngine
    from brctl.tui.widgets.palette import LIGHT

    def show(text: str) -> None:
        app.post_message(WorkFailed(text))

    engine: EngineClient = LocalEngine(settings, show)
    if recorded is not None:
        engine = RecordedEngine(recorded.job)
    reader = reader_of(settings, recorded)
    app = BrctlApp(
        reader,
        engine,
        address,
        theme=LIGHT if request.light else "",
        ascii_only=request.ascii_only,
        keymap=read_keymap(request.keys_file),
        look_every_s=request.look_every_s if recorded is None else 0.0,
        now=reader.now,
        saved=request.views,
    )
    if no_color is not None:
        # Textual takes it away; programs we lend the terminal to must still see it.
        os.environ["NO_COLOR"] = no_color
    app.run(mouse=request.mouse)


def reader_of(settings: Settings, recorded: "ReopenedIncident | None") -> "DiskStateReader":
    """What is on disk of a context, or of a recorded incident at its own time."""
    from brctl.tui.session.state_reader import DiskStateReader

    if recorded is None:
        return DiskStateReader(settings)
    reader = DiskStateReader(settings, lambda: recorded.recorded_at, recorded.inventory)
    reader.set_scheduler_state({}, [recorded.job] if recorded.job else [], "")
    return reader


def print_once(
    settings: Settings, request: ViewRequest, recorded: "ReopenedIncident | None" = None
) -> str:
    """A view as plain text, from what is on disk; only a filter may ask the scheduler."""
    from brctl.tui.once import once_text
    from brctl.tui.rows.filters import asks_scheduler
    from brctl.tui.session.local_engine import LocalEngine

    reader = reader_of(settings, recorded)
    if recorded is None and asks_scheduler(request.filter):
        state = asyncio.run(_placement(LocalEngine(settings, _say)))
        reader.set_scheduler_state(state.cordons, state.jobs, state.guard)
    return once_text(
        reader.read(), request.address or Address(), width=_columns(), ascii_only=request.ascii_only
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201 - stdout is the view


async def _placement(engine: EngineClient) -> SchedulerState:
    try:
        return await engine.placement()
    finally:
        await engine.close()


def _columns() -> int:
    try:
        return os.get_terminal_size().columns
    except OSError:
        return 100


def read_keymap(path: Path | None) -> Mapping[str, str]:
    """Remapped keys: `apiVersion, kind: Keys, keys: {fix: F5}`.

    Raises:
        ConfigError: The file is invalid, or names a key id that does not exist.
    """
    if path is None or not path.is_file():
        return {}
    from brctl.library.schema import open_kind
    from brctl.tui.keys import ALWAYS, EVERYWHERE, TARGET

    keys = open_kind(load_document(path), "Keys", ("keys",)).section("keys")
    known = {key.id for key in (*EVERYWHERE, *TARGET, *ALWAYS)} | {"move.up", "move.down"}
    for name in keys.data:
        if name not in known:
            raise ConfigError(f"{path}: no key `{name}`; {did_you_mean(name, known)}")
    return {name: keys.value(name, str) for name in keys.data}
