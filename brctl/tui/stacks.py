"""Where all ranks of a job stand, as one merged tree."""

from collections.abc import Iterable

from textual.widget import Widget

from brctl.tui.facts import Facts
from brctl.tui.frame import Frame
from brctl.tui.lines import Lines
from brctl.tui.rows import Tone, row


class StacksScreen(Frame):
    """The tree."""

    place = "stacks"
    unavailable = frozenset({"approve", "deny", "rollback", "colour", "sort", "detail"})

    def body(self) -> Iterable[Widget]:
        yield Lines(id="list")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#list").focus()

    def show(self, facts: Facts) -> None:
        text = f"no stacks were taken here yet; :stacks {self.address.item} takes them"
        self.query_one("#list", Lines).show([row((text, Tone.DIM))])
