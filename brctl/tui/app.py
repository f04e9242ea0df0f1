"""`brctl tui`: what the engine knows, on screens; anything it can do, the command line can do."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import SuspendNotSupported
from textual.binding import BindingType
from textual.filter import LineFilter

from brctl.engine.controller import clock
from brctl.model.errors import BrctlError
from brctl.tui.address import Address
from brctl.tui.changing import ChangingApp
from brctl.tui.commands import read_command
from brctl.tui.keys import ALWAYS, bindings
from brctl.tui.permits import allowed
from brctl.tui.refreshing import LOOK_EVERY_S, TICK_S
from brctl.tui.rows.help_rows import help_rows
from brctl.tui.rows.row import Tone, row
from brctl.tui.screens.action_sheet import sheet_rows
from brctl.tui.screens.bisects import BisectScreen
from brctl.tui.screens.dialogs import ListDialog
from brctl.tui.screens.fleet import FleetScreen
from brctl.tui.screens.incidents import IncidentsScreen
from brctl.tui.screens.jobs import JobsScreen
from brctl.tui.screens.runs import RunsScreen
from brctl.tui.screens.standby import StandbyScreen
from brctl.tui.screens.verdicts import VerdictsScreen
from brctl.tui.screens.watch import WatchScreen
from brctl.tui.session.engine_client import EngineClient
from brctl.tui.session.saved_views import SavedViews
from brctl.tui.session.state_reader import StateReader
from brctl.tui.target import Target
from brctl.tui.widgets.palette import SIXTEEN, THEMES, AsciiFilter
from brctl.tui.widgets.palette_commands import ViewCommands


class BrctlApp(ChangingApp):
    """Fleet triage in the terminal."""

    TITLE = "brctl"
    CSS_PATH = Path(__file__).with_name("brctl.tcss")
    DEFAULT_MODE = "fleet"
    COMMANDS = {ViewCommands}  # noqa: RUF012  # Textual reads it from the class
    MODES = {  # noqa: RUF012  # Textual reads it from the class
        "fleet": FleetScreen,
        "verdicts": VerdictsScreen,
        "runs": RunsScreen,
        "bisect": BisectScreen,
        "incidents": IncidentsScreen,
        "standby": StandbyScreen,
        "jobs": JobsScreen,
        "watch": WatchScreen,
    }
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ALWAYS)]

    def __init__(
        self,
        reader: StateReader,
        engine: EngineClient,
        start: Address | None = None,
        *,
        now: Callable[[], datetime] = clock.now,
        theme: str = "",
        ascii_only: bool = False,
        keymap: Mapping[str, str] | None = None,
        tick_s: float = TICK_S,
        look_every_s: float = LOOK_EVERY_S,
        saved: SavedViews | None = None,
    ) -> None:
        super().__init__(reader, engine, start, now=now, tick_s=tick_s, look_every_s=look_every_s)
        self._theme_name = theme
        self._ascii = [AsciiFilter()] if ascii_only else []
        self._keymap_wanted = dict(keymap or {})
        self.saved = saved

    def on_mount(self) -> None:
        for theme in THEMES:
            self.register_theme(theme)
        few = self.console.color_system in ("standard", "windows")
        self.theme = self._theme_name or (SIXTEEN if few else THEMES[0].name)
        self.set_keymap(self._keymap_wanted)
        self.open_start()
        self.start_reading()

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), *self._ascii]

    def run_command(self, text: str) -> None:
        """What was typed after `:`."""
        try:
            command = read_command(text)
        except BrctlError as error:
            self.say(str(error), bad=True)
            return
        item = command.words[0] if command.words else ""
        target = self.view.target() if self.view else Target()
        if command.do == "go":
            self.go(command.address)
        elif command.do == "leave":
            self.exit()
        elif command.do == "help":
            self.open_help()
        elif command.do == "sweep":
            self.sweep(Target())
        elif command.do == "diagnose":
            self.diagnose(Target(job=item) if item else target)
        elif command.do == "fix":
            self.open_fix(Target(verdict=item) if item else target)
        elif command.do in ("save", "view", "forget"):
            self._saved_views(command.do, item)
        else:
            self.leave_for(command.words)

    def _saved_views(self, do: str, name: str) -> None:
        """`:save NAME`, `:view NAME`, `:forget NAME`; `:view` alone lists them."""
        if self.saved is None or self.view is None:
            return
        try:
            if do == "view" and not name:
                rows = [row(f"{name:20} ", (address.command(), Tone.DIM), key=name)
                        for name, address in sorted(self.saved.all().items())]  # fmt: skip
                nothing = [row(("no view is saved yet; `:save NAME` keeps this one", Tone.DIM))]
                self.push_screen(ListDialog("saved views", rows or nothing), self._open_saved)
            elif do == "view":
                self.go(self.saved.one(name))
            elif do == "save":
                self.saved.save(name, self.view.address)
                self.say(f"saved: brctl tui --view {name}")
            else:
                self.saved.forget(name)
                self.say(f"forgotten: {name}")
        except (BrctlError, OSError) as error:
            self.say(str(error), bad=True)

    def _open_saved(self, name: str | None) -> None:
        if name:
            self._saved_views("view", name)

    def allows(self, action: str, target: Target) -> bool:
        """Whether an action makes sense and is permitted now."""
        return self.facts is not None and allowed(action, target, self.facts)

    def only_job(self) -> str:
        """The job there is; "" when there are several or none."""
        jobs = self.facts.jobs if self.facts else ()
        return jobs[0].name if len(jobs) == 1 else ""

    def next_times(self) -> None:
        """UTC, local, since the fault."""
        self.times = self.times.next()
        self.say(f"times: {self.times.style.value}")
        self.redraw()

    def copy_line(self) -> None:
        """Copy the command line that opens this view."""
        if self.view and self.facts:
            self.copy(self.view.address.command(self.facts.context))

    def copy_nodes(self, target: Target) -> None:
        """Copy the nodes, folded."""
        if target.nodes:
            self.copy(target.folded)

    def open_help(self) -> None:
        """The keys of this view."""
        view_name = self.view.view_name if self.view else "fleet"
        self.push_screen(ListDialog("keys", help_rows(view_name)))

    def open_actions(self, target: Target) -> None:
        """Every action on what the cursor stands on."""
        if self.facts:
            rows = sheet_rows(target, self.facts)
            self.push_screen(ListDialog("actions", rows), self._act)

    def _act(self, choice: str | None) -> None:
        kind, _, rest = (choice or "").partition(":")
        view = self.view
        if kind == "do" and view is not None:
            self.call_later(view.run_action, rest)
        elif kind == "type" and view is not None:
            view.ask_command(rest)

    @work(exclusive=True, group="terminal", exit_on_error=False)
    async def leave_for(self, words: Sequence[str]) -> None:
        """Give the terminal to one of brctl's commands, and come back when it ends."""
        readonly = ["--readonly"] if self.facts and self.facts.readonly else []
        try:
            with self.suspend():
                code = await self.engine.in_terminal([*words, *readonly])
        except SuspendNotSupported:
            self.say(f"this terminal cannot be lent; run: brctl {shlex.join(words)}", bad=True)
            return
        self.say(f"brctl {shlex.join(words)}: exit {code}", bad=code not in (0, 1, 2))
        self._read_state()

    async def on_unmount(self) -> None:
        await self.engine.close()
