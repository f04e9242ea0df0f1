"""Screen 4: bisections, round by round, as their folders record them."""

from collections.abc import Iterable

from textual.widget import Widget

from brctl.tui.facts import Facts
from brctl.tui.frame import Frame
from brctl.tui.lines import Lines
from brctl.tui.rows import Tone, cut, row


class BisectScreen(Frame):
    """The list above, the rounds below."""

    place = "bisect"
    unavailable = frozenset({"approve", "deny", "rollback", "colour", "sort"})

    def body(self) -> Iterable[Widget]:
        yield Lines(id="list")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#list").focus()

    def show(self, facts: Facts) -> None:
        rows = [row(("no bisection is recorded; start one with  :nccl bisect -w NODES", Tone.DIM))]
        self.query_one("#list", Lines).show(cut(rows))
