"""What all screens share: two lines on top, a body, a prompt, and the keys that work now."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from brctl.model.errors import BrctlError, UnavailableError
from brctl.tui.actions import ViewActions
from brctl.tui.address import Address
from brctl.tui.keys import EVERYWHERE, HINTED, TARGET, Key, bindings, key_at
from brctl.tui.rows.filters import row_matcher
from brctl.tui.rows.row import Row, Span, Tone, flowed, row, safe
from brctl.tui.session.facts import Facts
from brctl.tui.target import NOTHING, Target, target_of
from brctl.tui.widgets.header import header_rows, screen_at, tabs_row
from brctl.tui.widgets.lines import Lines

HINTS_SHARE = 6
"""The footer takes at most this part of a low terminal; `?` has all keys."""

NARROW = 100
"""Below this width the right pane moves under the left one."""


class ViewScreen(ViewActions, Screen[None]):
    """A view with an address.

    Attributes:
        address: What this view shows now; `y` copies it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(EVERYWHERE), *bindings(TARGET)]
    view_name: ClassVar[str] = "fleet"
    unavailable: ClassVar[frozenset[str]] = frozenset()
    """Actions that mean nothing in this view; greyed."""

    def __init__(self, address: Address | None = None) -> None:
        super().__init__()
        self.address = address or Address(self.view_name)
        self.problem = ""
        self.unknown = ""
        self._asking = ""

    def compose(self) -> ComposeResult:
        yield Lines(id="tabs", fixed=True)
        yield Lines(id="header", fixed=True)
        with Container(id="body"):
            yield from self.body()
        yield Input(id="prompt")
        yield Lines(id="hints", fixed=True)

    def body(self) -> Iterable[Widget]:
        """The panes of this view."""
        raise NotImplementedError

    def show(self, facts: Facts) -> None:
        """Fill the panes from facts."""
        raise NotImplementedError

    def target(self) -> Target:
        """What the cursor stands on."""
        lines = self.focused
        if isinstance(lines, Lines) and self.brctl.facts:
            return target_of(lines.key, self.brctl.facts)
        return NOTHING

    def on_mount(self) -> None:
        self.query_one("#prompt").display = False
        self._narrow(self.size.width)
        self.redraw()

    def on_screen_resume(self) -> None:
        self.redraw()

    def on_resize(self, event: events.Resize) -> None:
        self._narrow(event.size.width)
        self.redraw()

    def _narrow(self, width: int) -> None:
        self.set_class(width < NARROW, "narrow")

    @property
    def width(self) -> int:
        """Cells of the widest pane's content."""
        return max(self.size.width, 20)

    def redraw(self) -> None:
        """Draw everything again from the app's facts."""
        try:
            self.query_one("#tabs", Lines).show(
                [tabs_row(self.address.view_name, self._note(), self.width)]
            )
        except NoMatches:
            return
        facts = self.brctl.facts
        if facts is None:
            self.query_one("#header", Lines).show([row(("reading the state folder ...", Tone.DIM))])
        else:
            self._show_known(facts)
            rows = header_rows(facts, self.brctl.clock(), busy=self.brctl.busy)
            self.query_one("#header", Lines).show([*rows, *self._filter_row()])
        self.draw_hints()

    def _show_known(self, facts: Facts) -> None:
        """A filter on what is not known yet leaves the screen as it is and says so."""
        try:
            self.show(facts)
            self.unknown = ""
        except UnavailableError as error:
            self.unknown = str(error)

    def _note(self) -> str:
        return "FROZEN (p)" if self.brctl.frozen else ""

    def _filter_row(self) -> list[Row]:
        if problem := self.problem or self.unknown:
            return [row((f"! {safe(problem, 300)}", Tone.CRIT))]
        if self.address.filter and not self._asking:
            text = safe(self.address.filter, 200)
            return [row(("filter ", Tone.HEAD), (text, Tone.WARN), "  esc clears")]
        return []

    def filtered(self, rows: Sequence[Row]) -> list[Row]:
        """The rows that the filter lets through."""
        wanted = row_matcher(self.address.filter)
        return [line for line in rows if not line.key or wanted(line)]

    def open(self, address: Address) -> None:
        """Show another item or filter of the same view."""
        self.address = address
        self.problem = ""
        self.redraw()

    def draw_hints(self) -> None:
        """Keys that work now; those that do not are in brackets, not hidden."""
        shown = {b.binding.id: b for b in self.active_bindings.values() if b.binding.show}
        spans: list[Span] = []
        for key in HINTED:
            if key.id in shown:
                name, active = key.shown.split()[0], shown[key.id]
                if active.enabled:
                    spans += [(f" {name}", Tone.HEAD), (f" {key.label} ", Tone.PLAIN)]
                else:
                    spans += [("", Tone.DIM), (f"({name} {key.label})", Tone.DIM)]
        lines = flowed(spans, self.width)
        self.query_one("#hints", Lines).show(lines[: max(self.size.height // HINTS_SHARE, 1)])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """None greys a key out: it exists, and it is not allowed now."""
        if action in ("command", "filter") and self._asking:
            return False
        allowed = self.brctl.allows(action, self.target() if self.is_mounted else NOTHING)
        return None if action in self.unavailable or not allowed else True

    # -- moving about ----------------------------------------------------------------------------

    def action_screen(self, number: int) -> None:
        self.brctl.go_root(number)

    def action_back(self) -> None:
        if not self._close_prompt() and not self.step_back():
            self.brctl.back()

    def step_back(self) -> bool:
        """Undo one thing inside this view; False when there is nothing to undo."""
        if self.brctl.stop_planning():
            return True
        if self.problem or self.address.filter:
            self.open(self.address.filtered(""))
            return True
        return False

    def action_leave(self) -> None:
        if not self._close_prompt() and not self.step_back():
            self.brctl.back(leave=True)

    def action_next_bad(self, by: int) -> None:
        self.query_one(Lines).action_move(by)

    def action_pane(self) -> None:
        self.focus_next("Lines, Heatmap, Tree, Input")

    def action_mark(self) -> None:
        if isinstance(self.focused, Lines):
            self.focused.toggle_mark()

    def action_mark_range(self) -> None:
        if isinstance(self.focused, Lines):
            self.focused.mark_range()

    @on(Lines.Clicked)
    def row_clicked(self, message: Lines.Clicked) -> None:
        """Tabs open their screen, keys of the footer do what they say; two clicks are enter."""
        place = message.lines.id
        if place == "tabs" and (number := screen_at(message.lines.rows[0], message.column)):
            self.brctl.go_root(number)
        elif place == "hints":
            self.call_later(self._press, key_at(message.lines.rows[message.index], message.column))
        elif message.twice and message.lines.can_focus:
            self.action_detail()

    async def _press(self, key: Key | None) -> None:
        if key is not None and self.check_action(key.action.partition("(")[0], ()):
            await self.run_action(key.action)

    # -- prompt ----------------------------------------------------------------------------------

    def action_filter(self) -> None:
        self._ask("filter", self.address.filter, "filter: node set, @group or words; ! inverts")

    def action_command(self) -> None:
        self._ask("command", "", "command, as after `brctl`: ls @rack:r1, why V-1, fix, q")

    def ask_command(self, text: str) -> None:
        """Put a command line into the prompt, for a person to finish."""
        self._ask("command", text, "")

    def _ask(self, what: str, value: str, hint: str) -> None:
        self._asking = what
        prompt = self.query_one("#prompt", Input)
        prompt.display = True
        prompt.placeholder = hint
        prompt.value = value
        # At once: keys that were typed ahead belong to the prompt, not to the view.
        self.set_focus(prompt)

    def _close_prompt(self) -> bool:
        if not self._asking:
            return False
        self._asking = ""
        self.query_one("#prompt").display = False
        self.focus_first()
        self.redraw()
        return True

    def focus_first(self) -> None:
        """Put the focus back on the main pane."""
        for widget in self.query("#body *"):
            if widget.focusable:
                self.set_focus(widget)
                return

    @on(Input.Changed, "#prompt")
    def filter_while_typing(self, event: Input.Changed) -> None:
        if self._asking == "filter":
            self._try_filter(event.value)

    @on(Input.Submitted, "#prompt")
    def prompt_done(self, event: Input.Submitted) -> None:
        what, text = self._asking, event.value.strip()
        if what == "filter":
            self._try_filter(text)
        self._close_prompt()
        if what == "command" and text:
            self.brctl.run_command(text)

    def _try_filter(self, text: str) -> None:
        before = self.address
        try:
            self.open(before.filtered(text.strip()))
        except BrctlError as error:
            self.address, self.problem = before.filtered(""), str(error)
            self.redraw()

    @on(Lines.Moved)
    def cursor_moved(self) -> None:
        """Which keys are allowed depends on what the cursor stands on."""
        if self.is_current:
            self.draw_hints()
