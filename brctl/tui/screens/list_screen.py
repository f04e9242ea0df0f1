"""A list above, and what its current line stands for below: verdicts, runs, incidents."""

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.widget import Widget

from brctl.tui.address import Address
from brctl.tui.rows.row import Row, Tone, cut, row
from brctl.tui.rows.sorting import in_order, titles_of
from brctl.tui.screens.one_list import OneListScreen
from brctl.tui.session.facts import Facts
from brctl.tui.target import Target, marked, target_of
from brctl.tui.widgets.lines import Lines


class ListScreen(OneListScreen):
    """The address's item is the line under the cursor.

    Attributes:
        kind: What the list's keys start with, `verdict`.
    """

    kind: ClassVar[str] = ""

    def __init__(self, address: Address | None = None) -> None:
        super().__init__(address)
        self._requested_item = self.address.item

    def list_rows(self, facts: Facts) -> list[Row]:
        """The lines of the list."""
        raise NotImplementedError

    def detail_rows(self, facts: Facts, item: str, width: int) -> list[Row] | None:
        """What one item shows; None when there is no such item."""
        raise NotImplementedError

    def body(self) -> Iterable[Widget]:
        yield from super().body()
        yield Lines(id="detail")

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
        rows = in_order(self.list_rows(facts), self.address.sort)
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
            self.address = replace(self.address, item=self.item)
            self.left_item()
        if self.brctl.facts:
            self.draw_detail(self.brctl.facts)

    def left_item(self) -> None:
        """The cursor went to another item; a special form of the old one ends."""

    def target(self) -> Target:
        """What is marked, or the line under the cursor."""
        facts = self.brctl.facts
        if facts is None:
            return Target()
        marks = self.listing.marks
        return marked(marks, facts) if marks else target_of(self.listing.key, facts)

    def action_detail(self) -> None:
        self.set_focus(self.detail)

    def action_sort(self) -> None:
        """By the next column; after the last one in the list's own order again."""
        titles = self._titles()
        here = titles.index(self._title) if self._title in titles else -1
        self._sort_by(titles[here + 1] if here + 1 < len(titles) else "")

    def action_sort_back(self) -> None:
        """The same column, the last line first."""
        sort = self.address.sort
        if sort:
            self._sort_by(sort[1:] if sort.startswith("-") else f"-{sort}")

    @on(Lines.Clicked, "#list")
    def head_clicked(self, message: Lines.Clicked) -> None:
        """A click on a title sorts by it, a second one the other way round."""
        if message.index or not message.word:
            return
        self._sort_by(f"-{message.word}" if self.address.sort == message.word else message.word)

    @property
    def _title(self) -> str:
        return self.address.sort.removeprefix("-").upper()

    def _titles(self) -> list[str]:
        return titles_of(self.list_rows(self.brctl.facts)) if self.brctl.facts else []

    def _sort_by(self, sort: str) -> None:
        self.address = self.address.sorted_by(sort)
        order = f"{sort.removeprefix('-')}{', last first' if sort.startswith('-') else ''}"
        self.brctl.say(f"sorted by {order or 'its own order'}")
        self.redraw()

    def step_back(self) -> bool:
        if self.focused is self.detail:
            self.set_focus(self.listing)
            return True
        if self.listing.marks:
            self.listing.clear_marks()
            return True
        return super().step_back()
