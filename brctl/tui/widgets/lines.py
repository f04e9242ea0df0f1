"""A list drawn line by line: any number of rows costs what the screen shows of them."""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from brctl.tui.rows.row import Row
from brctl.tui.widgets.palette import tone_style

GUTTER = 2
WIDEST = 4000
"""Cells a row may be wide before it is cut; longer lines are data gone wrong."""


class Lines(ScrollView, can_focus=True):
    """Rows with a cursor on those that stand for something, and marks.

    Attributes:
        cursor: Index of the current row.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False, id="move.up"),
        Binding("down,j", "move(1)", "down", show=False, id="move.down"),
        Binding("pageup", "page(-1)", "page up", show=False, id="move.page_up"),
        Binding("pagedown", "page(1)", "page down", show=False, id="move.page_down"),
        Binding("g,home", "edge(-1)", "first", show=False, id="move.first"),
        Binding("G,end", "edge(1)", "last", show=False, id="move.last"),
        Binding("left,h", "sideways(-8)", "left", show=False, id="move.left"),
        Binding("right,l", "sideways(8)", "right", show=False, id="move.right"),
    ]

    cursor = reactive(0)

    class Moved(Message):
        """The cursor stands on another row."""

        def __init__(self, lines: "Lines", key: str) -> None:
            super().__init__()
            self.lines = lines
            self.key = key

        @property
        def control(self) -> "Lines":
            return self.lines

    class Clicked(Message):
        """Somebody clicked on a row: its number, the word there, twice in a row or once."""

        def __init__(self, lines: "Lines", index: int, column: int, *, twice: bool) -> None:
            super().__init__()
            self.lines = lines
            self.index = index
            self.column = column
            self.twice = twice

        @property
        def control(self) -> "Lines":
            return self.lines

        @property
        def word(self) -> str:
            """The word under the pointer, "" between words."""
            text = self.lines.rows[self.index].text
            if self.column >= len(text) or text[self.column].isspace():
                return ""
            before, after = text[: self.column], text[self.column :]
            return before.split(" ")[-1] + after.split(" ")[0]

    def __init__(
        self, rows: Sequence[Row] = (), *, id: str = "", fixed: bool = False
    ) -> None:  # Textual's name
        super().__init__(id=id or None, classes="fixed" if fixed else "")
        self.rows: list[Row] = list(rows)
        self.marks: set[str] = set()
        self._fixed = fixed
        self.can_focus = not fixed

    @property
    def key(self) -> str:
        """What the current row stands for."""
        return self.rows[self.cursor].key if self.cursor < len(self.rows) else ""

    def show(self, rows: Sequence[Row]) -> None:
        """Replace the rows; the cursor stays on what it stood on, wherever that is now."""
        if list(rows) == self.rows:
            return
        wanted, self.rows = self.key, list(rows)
        self.marks &= {line.key for line in self.rows}
        keys = [line.key for line in self.rows]
        if wanted and wanted in keys:
            self.cursor = keys.index(wanted)
        elif not self.key:
            self.cursor = next((i for i, key in enumerate(keys) if key), 0)
        self._measure()
        self.refresh()

    def go_to(self, key: str) -> bool:
        """Put the cursor on a row; False when it is not listed."""
        for index, line in enumerate(self.rows):
            if line.key == key:
                self.cursor = index
                return True
        return False

    def on_mount(self) -> None:
        self._measure()

    def _measure(self) -> None:
        widest = max((cell_len(line.text) for line in self.rows), default=0)
        self.virtual_size = Size(min(widest, WIDEST) + self._gutter, len(self.rows))
        if self._fixed:
            self.styles.height = len(self.rows)

    @property
    def _gutter(self) -> int:
        return 0 if self._fixed else GUTTER

    def watch_cursor(self, old: int, new: int) -> None:
        self.refresh_lines(old - round(self.scroll_offset.y), 1)
        self.scroll_to_region(Region(0, new, 1, 1), animate=False, force=True)
        self.refresh()
        self.post_message(self.Moved(self, self.key))

    def action_move(self, by: int) -> None:
        if not any(line.key for line in self.rows):
            self.scroll_relative(y=by, animate=False)
            return
        target = self.cursor + by
        while 0 <= target < len(self.rows) and not self.rows[target].key:
            target += by
        if 0 <= target < len(self.rows):
            self.cursor = target
        else:
            self.scroll_relative(y=by, animate=False)

    def action_page(self, by: int) -> None:
        if not any(line.key for line in self.rows):
            self.scroll_relative(y=by * max(self.size.height - 1, 1), animate=False)
            return
        for _ in range(max(self.size.height - 1, 1)):
            self.action_move(by)

    def action_edge(self, by: int) -> None:
        keyed = [index for index, line in enumerate(self.rows) if line.key]
        if keyed:
            self.cursor = keyed[0] if by < 0 else keyed[-1]
        else:
            self.scroll_to(y=0 if by < 0 else len(self.rows), animate=False)

    def action_sideways(self, by: int) -> None:
        self.scroll_relative(x=by, animate=False)

    def on_click(self, event: events.Click) -> None:
        """The cursor goes where the pointer is; ctrl marks the row, shift all rows up to it."""
        index = event.y + round(self.scroll_offset.y)
        if not 0 <= index < len(self.rows):
            return
        if self.rows[index].key and not self._fixed:
            self.cursor = index
            if event.ctrl or event.meta:
                self.toggle_mark()
            elif event.shift:
                self.mark_range()
        column = event.x + round(self.scroll_offset.x) - self._gutter
        self.post_message(self.Clicked(self, index, column, twice=event.chain == 2))

    def clear_marks(self) -> None:
        """Take all marks away."""
        self.marks.clear()
        self.refresh()

    def toggle_mark(self) -> None:
        """Mark the current row, or take the mark away."""
        if self.key:
            self.marks ^= {self.key}
            self.refresh()

    def mark_range(self) -> None:
        """Mark everything from the nearest mark above to the current row."""
        first = next(
            (i for i in range(self.cursor, -1, -1) if self.rows[i].key in self.marks), self.cursor
        )
        self.marks |= {line.key for line in self.rows[first : self.cursor + 1] if line.key}
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One visible line; no more than the visible part of a row is ever drawn."""
        x, index = round(self.scroll_offset.x), y + round(self.scroll_offset.y)
        width, base = self.size.width, self.rich_style
        if not 0 <= index < len(self.rows):
            return Strip.blank(width, base)
        line = self.rows[index]
        here = index == self.cursor and bool(line.key) and not self._fixed
        background = base + Style(bgcolor=self._cursor_colour(), bold=True) if here else base
        segments = [] if self._fixed else [Segment(self._mark(line, here), background)]
        theme = self.app.theme
        segments += [
            Segment(text, background + tone_style(theme, tone)) for text, tone in line.spans
        ]
        strip = Strip(segments)
        strip = strip.crop(x, x + width) if x or strip.cell_length > width else strip
        return strip.adjust_cell_length(width, background)

    def _mark(self, line: Row, here: bool) -> str:
        return (">" if here else " ") + ("*" if line.key and line.key in self.marks else " ")

    def _cursor_colour(self) -> str | None:
        if self.app.native_ansi_color:
            return None
        return "#2a3a45" if self.app.current_theme.dark else "#d3e3ec"
