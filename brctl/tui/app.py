"""`brctl tui`: what the engine knows, on screens; anything it can do, the command line can do."""

import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar, TypeVar

from textual import on, work
from textual.app import SuspendNotSupported
from textual.binding import BindingType
from textual.filter import LineFilter

from brctl.engine.controller import clock
from brctl.model.errors import BrctlError
from brctl.model.sweeps.sweep import NodeHealth
from brctl.tui.address import ROOTS, Address
from brctl.tui.commands import read_command
from brctl.tui.keys import ALWAYS, bindings
from brctl.tui.navigation import NavigationHistory
from brctl.tui.permits import allowed
from brctl.tui.rows.confirmations import (
    Confirmation,
    confirm_answer,
    confirm_fix,
    confirm_rollback,
)
from brctl.tui.rows.help_rows import help_rows
from brctl.tui.rows.times import Times
from brctl.tui.screens.action_sheet import sheet_rows
from brctl.tui.screens.bisects import BisectScreen
from brctl.tui.screens.dialogs import ConfirmDialog, ListDialog, NoteDialog
from brctl.tui.screens.fleet import FleetScreen
from brctl.tui.screens.incidents import IncidentsScreen
from brctl.tui.screens.node import NodeScreen
from brctl.tui.screens.runs import RunsScreen
from brctl.tui.screens.stacks import StacksScreen
from brctl.tui.screens.standby import StandbyScreen
from brctl.tui.screens.verdicts import VerdictsScreen
from brctl.tui.screens.view_screen import ViewScreen
from brctl.tui.session.engine_client import EngineClient
from brctl.tui.session.facts import Facts
from brctl.tui.session.messages import Busy, FactsRead, WorkDone, WorkFailed
from brctl.tui.session.state_reader import StateReader
from brctl.tui.speech import NotifyingApp
from brctl.tui.target import Target
from brctl.tui.widgets.palette import SIXTEEN, THEMES, AsciiFilter
from brctl.tui.widgets.palette_commands import Places

Result = TypeVar("Result")
TICK_S = 2.0
PLACEMENT_EVERY = 5
"""Ticks between two questions to the scheduler."""
DETAILS: Mapping[str, Callable[[Address], ViewScreen]] = {
    "node": NodeScreen,
    "stacks": StacksScreen,
}


class BrctlApp(NotifyingApp):
    """Fleet triage in the terminal.

    Attributes:
        facts: What the disk said last; None before the first reading.
        busy: What runs in the background, in a few words.
    """

    TITLE = "brctl"
    CSS_PATH = Path(__file__).with_name("brctl.tcss")
    DEFAULT_MODE = "fleet"
    COMMANDS = {Places}  # noqa: RUF012  # Textual reads it from the class
    MODES = {  # noqa: RUF012  # Textual reads it from the class
        "fleet": FleetScreen,
        "verdicts": VerdictsScreen,
        "runs": RunsScreen,
        "bisect": BisectScreen,
        "incidents": IncidentsScreen,
        "standby": StandbyScreen,
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
    ) -> None:
        super().__init__(now)
        self.reader = reader
        self.engine = engine
        self.facts: Facts | None = None
        self.busy = ""
        self.frozen = False
        self.times = Times()
        self.measured: dict[str, Mapping[str, float]] = {}
        self._start = start
        self._theme_name = theme
        self._ascii = [AsciiFilter()] if ascii_only else []
        self._keymap_wanted = dict(keymap or {})
        self._tick_s = tick_s
        self._ticks = 0
        self._reading = False
        self._planning = False
        self._history = NavigationHistory()

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), *self._ascii]

    def on_mount(self) -> None:
        for theme in THEMES:
            self.register_theme(theme)
        few = self.console.color_system in ("standard", "windows")
        self.theme = self._theme_name or (SIXTEEN if few else THEMES[0].name)
        self.set_keymap(self._keymap_wanted)
        if self._start is not None:
            self.go(self._start)
        else:
            self._history.arrive(Address())
        self._read_state()
        self.set_interval(self._tick_s, self._tick)

    # -- facts -----------------------------------------------------------------------------------

    def _tick(self) -> None:
        """The world moves on; a frozen screen does not."""
        self._ticks += 1
        if self.frozen:
            return
        if self._ticks % PLACEMENT_EVERY == 1:
            self._ask_placement()
        self._read_state()

    def _read_state(self) -> None:
        if not self._reading:
            self._reading = True
            self._read_in_thread()

    @work(thread=True, group="desk", exit_on_error=False)
    def _read_in_thread(self) -> None:
        try:
            self.post_message(FactsRead(self.reader.read()))
        finally:
            self._reading = False

    @work(exclusive=True, group="placement", exit_on_error=False)
    async def _ask_placement(self) -> None:
        try:
            placed = await self.engine.placement()
        except (BrctlError, OSError) as error:
            self.post_message(WorkFailed(f"scheduler: {error}"))
            return
        self.reader.place(placed.cordons, placed.jobs, placed.guard)
        self._read_state()

    @on(FactsRead)
    def take_facts(self, message: FactsRead) -> None:
        first, self.facts = self.facts is None, message.facts
        if first:
            self._ask_placement()
            open_ones = message.facts.open_verdicts
            if self._start is None and len(open_ones) == 1:
                self.go(Address("verdicts", open_ones[0].verdict.id))
                return
        if not self.frozen or first:
            self.redraw()

    def redraw(self) -> None:
        """Draw the visible view from the facts."""
        for screen in reversed(self.screen_stack):
            if isinstance(screen, ViewScreen):
                screen.redraw()
                return

    @property
    def view(self) -> ViewScreen | None:
        """The visible view, dialogs left aside."""
        return next((s for s in reversed(self.screen_stack) if isinstance(s, ViewScreen)), None)

    # -- going places ----------------------------------------------------------------------------

    def go(self, address: Address, *, remember: bool = True) -> None:
        """Open a view."""
        if remember:
            self._history.arrive(address)
        if address.place in DETAILS:
            self.push_screen(DETAILS[address.place](address))
            return
        self.switch_mode(address.place)
        while len(self.screen_stack) > 1:
            self.pop_screen()
        if isinstance(self.screen, ViewScreen):
            self.screen.open(address)

    def go_root(self, number: int) -> None:
        """Open one of the six screens as it was left."""
        place = ROOTS[number - 1]
        self.switch_mode(place)
        view = self.view
        if view is not None:
            self._history.arrive(view.address)
            view.redraw()

    def back(self, *, leave: bool = False) -> None:
        """Close this view; at the top leave if asked to."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
        elif self.current_mode != "fleet":
            self.go_root(1)
        elif leave:
            self.exit()

    def step_history(self, by: int) -> None:
        """Along the history of views."""
        address = self._history.step(by)
        if address is not None:
            self.go(address, remember=False)

    def go_last(self) -> None:
        """Back to the view we came from."""
        address = self._history.last()
        if address is not None:
            self.go(address, remember=False)

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
        else:
            self.leave_for(command.words)

    # -- small things ----------------------------------------------------------------------------

    def allows(self, action: str, target: Target) -> bool:
        """Whether an action makes sense and is permitted now."""
        return self.facts is not None and allowed(action, target, self.facts)

    def only_job(self) -> str:
        """The job there is; "" when there are several or none."""
        jobs = self.facts.jobs if self.facts else ()
        return jobs[0].name if len(jobs) == 1 else ""

    def toggle_freeze(self) -> None:
        """Hold the screen still, or let it go on."""
        self.frozen = not self.frozen
        self.redraw()

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

    def reread(self) -> None:
        """Read the disk and ask the scheduler again."""
        self.reader.forget()
        self._ask_placement()
        self._read_state()

    def measure(self, colour: str) -> None:
        """Read the values of a colouring in the background."""
        self._measure(colour)

    @work(thread=True, group="measure", exit_on_error=False)
    def _measure(self, colour: str) -> None:
        self.measured[colour] = self.reader.measure(colour)
        self.call_from_thread(self.redraw)

    # -- work ------------------------------------------------------------------------------------

    @on(Busy)
    def take_busy(self, message: Busy) -> None:
        self.busy = message.text
        self.redraw()

    @on(WorkFailed)
    def take_failure(self, message: WorkFailed) -> None:
        self.busy = ""
        self.say(message.text, bad=True)
        self.redraw()

    @on(WorkDone)
    def take_result(self, message: WorkDone) -> None:
        self.busy = ""
        self.say(message.text)
        self._ask_placement()
        if message.place:
            self.go(Address(message.place, message.item))
        self._read_state()

    def sweep(self, target: Target) -> None:
        """Sweep the marked nodes, the node shown, or everything the filter lets through."""
        facts, view = self.facts, self.view
        if facts is None or self.busy:
            return
        names = target.nodes if view and view.place == "node" else ()
        if isinstance(view, FleetScreen):
            shown = [fact.name for fact in view.shown(facts)]
            names = tuple(view.heatmap.marks) or tuple(shown)
        self._sweep(names or tuple(facts.inventory.nodes))

    @work(exclusive=True, group="look", exit_on_error=False)
    async def _sweep(self, names: Sequence[str]) -> None:
        done = 0

        def count(node: NodeHealth) -> None:
            nonlocal done
            done += 1
            self.post_message(Busy(f"sweep {done}/{len(names)}"))

        self.post_message(Busy(f"sweep 0/{len(names)}"))
        await self._doing(self.engine.sweep(names, count), lambda sweep: WorkDone(f"{sweep}: done"))

    def diagnose(self, target: Target) -> None:
        """Diagnose the job, or the nodes; reading only."""
        if not self.busy:
            self._diagnose(target)

    @work(exclusive=True, group="look", exit_on_error=False)
    async def _diagnose(self, target: Target) -> None:
        self.post_message(Busy(f"diagnosing {target.job or target.folded or 'the job'}"))
        await self._doing(
            self.engine.diagnose(target.nodes, target.job),
            lambda ids: WorkDone(f"verdict {ids[0]}", "verdicts", ids[0]),
        )

    async def _doing(self, work_: Awaitable[Result], done: Callable[[Result], WorkDone]) -> None:
        try:
            result = await work_
        except (BrctlError, OSError) as error:
            hint = getattr(error, "hint", None)
            self.post_message(WorkFailed(f"{error}{f'; {hint}' if hint else ''}"))
            return
        self.post_message(done(result))

    # -- dialogs ---------------------------------------------------------------------------------

    @property
    def dialog_width(self) -> int:
        """Cells of text in a dialog."""
        return max(min(self.size.width - 8, 108), 40)

    def open_help(self) -> None:
        """The keys of this view."""
        place = self.view.place if self.view else "fleet"
        self.push_screen(ListDialog("keys", help_rows(place)))

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

    def open_fix(self, target: Target) -> None:
        """Plan the fix in the background, then show it; nothing is changed."""
        if target.verdict and not self.busy:
            self._propose(target.verdict)
        elif not target.verdict:
            self.say("no verdict names this; x diagnoses it", bad=True)

    def stop_planning(self) -> bool:
        """Forget a plan that is being made, so that no dialog opens on somebody who left."""
        if not self._planning:
            return False
        self.workers.cancel_group(self, "plan")
        self._planning, self.busy = False, ""
        self.redraw()
        return True

    @work(exclusive=True, group="plan", exit_on_error=False)
    async def _propose(self, verdict_id: str) -> None:
        self._planning = True
        self.take_busy(Busy(f"planning the fix of {verdict_id}"))
        try:
            proposal = await self.engine.propose(verdict_id)
        except (BrctlError, OSError) as error:
            self.post_message(WorkFailed(str(error)))
            return
        finally:
            self._planning = False
        self.take_busy(Busy(""))
        readonly = self.facts is None or self.facts.readonly
        question = confirm_fix(proposal, self.dialog_width, readonly=readonly)
        if await self.push_screen_wait(ConfirmDialog(question)):
            self.post_message(Busy("starting the run"))
            await self._doing(
                self.engine.start(proposal), lambda run: WorkDone(f"{run} started", "runs", run)
            )

    def open_approval(self, target: Target, *, yes: bool) -> None:
        """Answer a run that waits."""
        run = self.facts.run(target.run) if self.facts else None
        if run is None or not run.waiting:
            return
        times = self.times.since(run.started_at)
        question = confirm_answer(run, self.dialog_width, yes=yes, times=times)
        answer = self.engine.approve if yes else lambda name, _typed: self.engine.deny(name)
        self._ask(question, run.name, answer)

    def open_rollback(self, target: Target) -> None:
        """Take back what a run changed."""
        run = self.facts.run(target.run) if self.facts else None
        if run is not None:
            times = self.times.since(run.started_at)
            question = confirm_rollback(run, self.dialog_width, times)
            self._ask(question, run.name, lambda name, _typed: self.engine.rollback(name))

    @work(exclusive=True, group="ask", exit_on_error=False)
    async def open_note(self, incident: str) -> None:
        """Ask for a note and keep it."""
        text = await self.push_screen_wait(NoteDialog(incident))
        if not text:
            return
        try:
            self.reader.add_note(incident, text)
        except (BrctlError, OSError) as error:
            self.say(str(error), bad=True)
        self._read_state()

    def export(self, name: str, text: str) -> None:
        """Write a file and say where it is."""
        try:
            self.say(f"written: {self.reader.export(name, text)}")
        except OSError as error:
            self.say(f"cannot write {name}: {error}", bad=True)

    @work(exclusive=True, group="ask", exit_on_error=False)
    async def _ask(
        self, question: Confirmation, run: str, act: Callable[[str, str], Awaitable[None]]
    ) -> None:
        typed = await self.push_screen_wait(ConfirmDialog(question))
        if typed:
            await self._doing(
                act(run, typed), lambda _: WorkDone(f"{run}: {question.command}", "runs", run)
            )

    # -- the terminal ----------------------------------------------------------------------------

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
