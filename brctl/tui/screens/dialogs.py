"""Dialogs: nothing changes without one, its default is Cancel, and words must be typed."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input

from brctl.tui.rows.confirmations import Confirmation
from brctl.tui.rows.row import Row, Tone, paragraph, row, safe
from brctl.tui.widgets.lines import Lines


class ConfirmDialog(ModalScreen[str]):
    """Shows what would happen; gives back the typed words, or "" for no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "cancel", "cancel"),
        Binding("A", "type", "type the words", priority=True),
        Binding("up,k", "scroll(-1)", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("pageup", "scroll(-10)", show=False),
        Binding("pagedown", "scroll(10)", show=False),
        Binding("tab", "app.focus_next", show=False),
    ]

    def __init__(self, question: Confirmation) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        question = self._question
        with Vertical(id="dialog"):
            yield Lines([row((safe(question.title, 200), Tone.HEAD))], id="title", fixed=True)
            yield Lines(question.rows, id="plan")
            yield Lines(self._asking(), id="asking", fixed=True)
            with Horizontal(id="answer"):
                yield Button("Cancel", id="cancel", compact=True)
                if not question.refused:
                    yield Input(placeholder=f"type {question.words} and press enter", id="words",
                                compact=True)  # fmt: skip

    def _asking(self, wrong: str = "") -> list[Row]:
        question = self._question
        rows = [row(("the same as  ", Tone.DIM), (safe(question.command, 300), Tone.HEAD))]
        if question.refused:
            width = max(min(self.app.size.width - 8, 108), 40)
            return [*rows, *paragraph("", safe(question.refused, 600), width, Tone.CRIT)]
        if wrong:
            return [
                *rows,
                row((f"type exactly `{question.words}`, not `{safe(wrong, 80)}`", Tone.CRIT)),
            ]
        text = f"to go on: A, then type  {question.words}  and enter.   esc or enter: cancel"
        return [*rows, row((text, Tone.WARN))]

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#cancel"))

    def action_cancel(self) -> None:
        self.dismiss("")

    def action_type(self) -> None:
        if not self._question.refused:
            # At once: words that were typed ahead must not be taken for keys.
            self.set_focus(self.query_one("#words"))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While words are typed, A is a letter."""
        return not (action == "type" and isinstance(self.focused, Input))

    def action_scroll(self, by: int) -> None:
        self.query_one("#plan", Lines).scroll_relative(y=by, animate=False)

    @on(Button.Pressed)
    def pressed(self) -> None:
        self.dismiss("")

    @on(Input.Submitted)
    def typed(self, event: Input.Submitted) -> None:
        if event.value.strip() == self._question.words:
            self.dismiss(self._question.words)
        else:
            self.query_one("#asking", Lines).show(self._asking(wrong=event.value or "nothing"))


class ListDialog(ModalScreen[str]):
    """A list over the view; gives back the key of the chosen line, or ""."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "cancel", "close"),
        Binding("enter", "choose", "choose"),
    ]

    def __init__(self, title: str, rows: Sequence[Row]) -> None:
        super().__init__()
        self._title, self._rows = title, list(rows)

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Lines([row((safe(self._title, 200), Tone.HEAD))], id="title", fixed=True)
            yield Lines(self._rows, id="plan")

    def on_mount(self) -> None:
        lines = self.query_one("#plan", Lines)
        self.set_focus(lines)
        lines.action_edge(-1)

    def action_cancel(self) -> None:
        self.dismiss("")

    def action_choose(self) -> None:
        self.dismiss(self.query_one("#plan", Lines).key)


class NoteDialog(ModalScreen[str]):
    """One line of text; empty or esc writes nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "cancel")]

    def __init__(self, incident: str) -> None:
        super().__init__()
        self._incident = incident

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            title = f"note on {safe(self._incident, 40)}"
            yield Lines([row((title, Tone.HEAD))], id="title", fixed=True)
            yield Input(placeholder="what people should know later; esc writes nothing", id="note",
                        compact=True)  # fmt: skip

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#note"))

    def action_cancel(self) -> None:
        self.dismiss("")

    @on(Input.Submitted)
    def typed(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())
