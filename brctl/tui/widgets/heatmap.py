"""The fleet as one character per node, drawn line by line."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from brctl.tui.rows.row import Tone, fitted, safe
from brctl.tui.session.facts import NodeFact
from brctl.tui.widgets.grid import LABEL_WIDTH, Colouring, MapLine, by_health, layout
from brctl.tui.widgets.palette import tone_style


class Heatmap(ScrollView, can_focus=True):
    """One character per node, rack by rack, with a cursor and marks."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1,0)", "up", show=False, id="move.up"),
        Binding("down,j", "move(1,0)", "down", show=False, id="move.down"),
        Binding("left,h", "move(0,-1)", "left", show=False, id="move.left"),
        Binding("right,l", "move(0,1)", "right", show=False, id="move.right"),
        Binding("pageup", "page(-1)", "page up", show=False, id="move.page_up"),
        Binding("pagedown", "page(1)", "page down", show=False, id="move.page_down"),
        Binding("g,home", "edge(-1)", "first", show=False, id="move.first"),
        Binding("G,end", "edge(1)", "last", show=False, id="move.last"),
    ]

    class Moved(Message):
        """The cursor stands on another node."""

        def __init__(self, heatmap: "Heatmap", name: str) -> None:
            super().__init__()
            self.heatmap = heatmap
            self.name = name

        @property
        def control(self) -> "Heatmap":
            return self.heatmap

    class Chosen(Message):
        """A node was clicked twice."""

        def __init__(self, heatmap: "Heatmap") -> None:
            super().__init__()
            self.heatmap = heatmap

        @property
        def control(self) -> "Heatmap":
            return self.heatmap

    def __init__(self) -> None:
        super().__init__(id="heatmap")
        self.marks: set[str] = set()
        self._facts: Mapping[str, NodeFact] = {}
        self._listed: tuple[NodeFact, ...] = ()
        self._lines: list[MapLine] = []
        self._cell_of: dict[str, tuple[int, int]] = {}
        self._colouring: Colouring = by_health
        self._at = (0, 0)
        self._width = 0

    @property
    def name_here(self) -> str:
        """The node under the cursor, "" when there is none."""
        y, x = self._at
        return self._lines[y].names[x] if y < len(self._lines) else ""

    def show(self, facts: Sequence[NodeFact], colouring: Colouring = by_health) -> None:
        """Show these nodes; nothing is laid out again when only their states changed."""
        listed = tuple(facts)
        before = self.name_here
        same = len(listed) == len(self._listed) and all(
            a.node is b.node for a, b in zip(listed, self._listed, strict=True)
        )
        self._listed, self._colouring = listed, colouring
        self._facts = {fact.name: fact for fact in listed}
        self.marks &= self._facts.keys()
        if not same or not self._lines:
            self._lay_out()
            if before in self._cell_of:
                self._at = self._cell_of[before]
        self.refresh()

    def go_to(self, name: str) -> None:
        """Put the cursor on a node, if it is shown."""
        if name in self._cell_of:
            self._stand(self._cell_of[name])

    def toggle_mark(self) -> None:
        """Mark the node under the cursor, or take the mark away."""
        if self.name_here:
            self.marks ^= {self.name_here}
            self.refresh()

    def mark_range(self) -> None:
        """Mark everything from the nearest mark before the cursor to the cursor."""
        order = list(self._cell_of)
        if self.name_here not in self._cell_of:
            return
        here = order.index(self.name_here)
        first = next((i for i in range(here, -1, -1) if order[i] in self.marks), here)
        self.marks |= set(order[first : here + 1])
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """The cursor goes to the node under the pointer; ctrl marks it, shift all up to it."""
        y = event.y + round(self.scroll_offset.y)
        x = event.x - LABEL_WIDTH - self.styles.padding.left
        if not (0 <= y < len(self._lines) and 0 <= x < len(self._lines[y].names)):
            return
        self._stand((y, x))
        if event.ctrl or event.meta:
            self.toggle_mark()
        elif event.shift:
            self.mark_range()
        if event.chain == 2:
            self.post_message(self.Chosen(self))

    def on_resize(self, event: events.Resize) -> None:
        if event.size.width != self._width:
            here = self.name_here
            self._lay_out()
            self.go_to(here)

    def _lay_out(self) -> None:
        self._width = self.size.width
        self._lines = layout(self._listed, self._width) if self._width else []
        self._cell_of = {
            name: (y, x) for y, line in enumerate(self._lines) for x, name in enumerate(line.names)
        }
        self._at = (0, 0)
        self.virtual_size = Size(self._width, len(self._lines))

    def _stand(self, at: tuple[int, int]) -> None:
        self._at = at
        self.scroll_to_region(Region(0, at[0], 1, 1), animate=False, force=True)
        self.refresh()
        self.post_message(self.Moved(self, self.name_here))

    def action_move(self, down: int, right: int) -> None:
        y, x = self._at
        if not self._lines:
            return
        x += right
        if x < 0 and y > 0:
            y, x = y - 1, len(self._lines[y - 1].names) - 1
        elif x >= len(self._lines[y].names) and y + 1 < len(self._lines):
            y, x = y + 1, 0
        y = min(max(y + down, 0), len(self._lines) - 1)
        self._stand((y, min(max(x, 0), len(self._lines[y].names) - 1)))

    def action_page(self, by: int) -> None:
        self.action_move(by * max(self.size.height - 1, 1), 0)

    def action_edge(self, by: int) -> None:
        if self._lines:
            last = len(self._lines) - 1
            self._stand((0, 0) if by < 0 else (last, len(self._lines[last].names) - 1))

    def render_line(self, y: int) -> Strip:
        """One line of racks; runs of one tone share a segment."""
        width, base, index = self.size.width, self.rich_style, y + round(self.scroll_offset.y)
        if not 0 <= index < len(self._lines):
            return Strip.blank(width, base)
        line, theme = self._lines[index], self.app.theme
        segments = [
            Segment(
                fitted(safe(line.label), LABEL_WIDTH - 1) + " ", base + tone_style(theme, Tone.DIM)
            )
        ]
        run, style_now = "", base
        for x, name in enumerate(line.names):
            letter, tone = self._colouring(self._facts[name])
            style = base + tone_style(theme, tone)
            if name in self.marks:
                style += Style(underline=True, bold=True)
            if (index, x) == self._at:
                style += Style(reverse=True)
            if style is not style_now and style != style_now:
                if run:
                    segments.append(Segment(run, style_now))
                run, style_now = "", style
            run += letter
        segments.append(Segment(run, style_now))
        return Strip(segments).adjust_cell_length(width, base)
