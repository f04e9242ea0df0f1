"""What views have in common that are a list, or begin with one: it has the keys at first."""

from collections.abc import Iterable

from textual.widget import Widget

from brctl.tui.screens.view_screen import ViewScreen
from brctl.tui.widgets.lines import Lines


class OneListScreen(ViewScreen):
    """A view whose first pane is a list."""

    def body(self) -> Iterable[Widget]:
        yield Lines(id="list")

    def on_mount(self) -> None:
        super().on_mount()
        self.set_focus(self.listing)

    @property
    def listing(self) -> Lines:
        return self.query_one("#list", Lines)
