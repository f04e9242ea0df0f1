"""A list above, and what its current line stands for below: verdicts, runs, incidents."""

from collections.abc import Iterable
from typing import ClassVar

from textual import on
from textual.widget import Widget

from brctl.model.nodeset import natural_key
from brctl.tui.address import Address
from brctl.tui.rows.row import Row, Tone, cut, row
from brctl.tui.screens.view_screen import ViewScreen
from brctl.tui.session.facts import Facts
from brctl.tui.target import Target, target_of
from brctl.tui.widgets.lines import Lines


class ListScreen(ViewScreen):
    """The address's item is the line under the cursor.

    Attributes:
        kind: What the list's keys start with, `verdict`.
    """

    kind: ClassVar[str] = ""

    def __init__(self, address: Address | None = None) -> None:
        super().__init__(address)
        self._requested_item = self.address.item
        self._column = -1

    def list_rows(self, facts: Facts) -> list[Row]:
        """The lines of the list."""
        raise NotImplementedError

    def detail_rows(self, facts: Facts, item: str, width: int) -> list[Row] | None:
        """What one item shows; None when there is no such item."""
        raise NotImplementedError

    def body(self) -> Iterable[Widget]:
        yield Lines(id="list")
        yield Lines(id="detail")

    def on_mount(self) -> None:
        super().on_mount()
        self.set_focus(self.query_one("#list"))

    @property
    def listing(self) -> Lines:
        return self.query_one("#list", Lines)

    @property
    def detail(self) -> Lines:
        return self.query_one("#detail", Lines)

    @property
    def item(self) -> str:
        """What the cursor of the list stands on."""
        return self.listing.key.partition(":")[2]

    def open(self, address: Address) -> None:
        # What was asked for may be on disk only after the next reading; the wish waits for it.
        self._requested_item = address.item
        super().open(address)

    def show(self, facts: Facts) -> None:
        rows = sorted_rows(self.list_rows(facts), self._column)
        self.listing.show(cut(self.filtered(rows)))
        if self._requested_item and self.listing.go_to(f"{self.kind}:{self._requested_item}"):
            self._requested_item = ""
        self.draw_detail(facts)

    def draw_detail(self, facts: Facts) -> None:
        """Fill the lower pane."""
        rows = self.detail_rows(facts, self.item, max(self.width - 4, 40)) if self.item else None
        self.detail.show(rows or [row((f"no {self.kind} is chosen", Tone.DIM))])

    @on(Lines.Moved, "#list")
    def chose(self, message: Lines.Moved) -> None:
        if self._requested_item:
            return
        if self.item != self.address.item:
            self.address = Address(self.view_name, self.item, self.address.filter)
            self.left_item()
        if self.brctl.facts:
            self.draw_detail(self.brctl.facts)

    def left_item(self) -> None:
        """The cursor went to another item; a special form of the old one ends."""

    def target(self) -> Target:
        facts = self.brctl.facts
        return target_of(self.listing.key, facts) if facts else Target()

    def action_detail(self) -> None:
        self.set_focus(self.detail)

    def action_sort(self) -> None:
        """By the next column; after the last one in the list's own order again."""
        rows = self.list_rows(self.brctl.facts) if self.brctl.facts else []
        titles = rows[0].text.split() if rows else []
        self._column = -1 if self._column + 1 >= len(titles) else self._column + 1
        order = titles[self._column] if self._column >= 0 else "its own order"
        self.brctl.say(f"sorted by {order}")
        self.redraw()

    def step_back(self) -> bool:
        if self.focused is self.detail:
            self.set_focus(self.listing)
            return True
        return super().step_back()


def sorted_rows(rows: list[Row], column: int) -> list[Row]:
    """A table's lines by one column, its head staying first; -1 leaves them as they are."""
    if column < 0:
        return rows
    # Cells and the gaps between them alternate.
    column_index = 2 * column
    head, body = rows[:1], rows[1:]
    return head + sorted(body, key=lambda line: natural_key(line.spans[column_index][0].strip()))
