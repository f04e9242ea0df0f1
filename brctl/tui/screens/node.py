"""One node in full: seven tabs over its newest answers."""

from collections.abc import Iterable

from textual.widget import Widget

from brctl.model.errors import BrctlError
from brctl.model.nodeset import natural_key
from brctl.tui.address import Address
from brctl.tui.rows.node_rows import TABS, title_rows
from brctl.tui.rows.row import Row, Span, Tone, cut, row, safe
from brctl.tui.screens.view_screen import ViewScreen
from brctl.tui.session.facts import Facts
from brctl.tui.target import Target, target_of
from brctl.tui.widgets.lines import Lines


class NodeScreen(ViewScreen):
    """Tab moves between tabs, `[` and `]` between nodes."""

    view_name = "node"
    unavailable = frozenset({"rollback", "colour", "sort", "sort_back", "detail"})

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._tab = "Health"

    def body(self) -> Iterable[Widget]:
        yield Lines(id="title", fixed=True)
        yield Lines(id="detail")

    def on_mount(self) -> None:
        super().on_mount()
        self.set_focus(self.query_one("#detail"))

    def show(self, facts: Facts) -> None:
        title, detail = self.query_one("#title", Lines), self.query_one("#detail", Lines)
        fact = facts.node(self.address.item)
        if fact is None:
            title.show([row(("not in the inventory: ", Tone.CRIT), self.address.item[:80])])
            detail.show([])
            return
        title.show([*title_rows(fact, facts), self._tabs()])
        try:
            health = self.brctl.reader.node_health(fact.name)
            past = self.brctl.reader.node_past(fact.name)
        except BrctlError as error:
            detail.show([row((safe(str(error)), Tone.CRIT))])
            return
        width = max(self.width - 4, 40)
        rows = TABS[self._tab](fact, health, past, facts, self.brctl.times, width)
        detail.show(cut(self.filtered(rows)))

    def _tabs(self) -> Row:
        spans: list[Span] = []
        for name in TABS:
            here = name == self._tab
            spans.append((f"[{name}]" if here else f" {name} ", Tone.HEAD if here else Tone.DIM))
        return Row((*spans, ("   tab: next", Tone.DIM)))

    def target(self) -> Target:
        facts = self.brctl.facts
        return target_of(f"node:{self.address.item}", facts) if facts else Target()

    def action_pane(self) -> None:
        names = list(TABS)
        self._tab = names[(names.index(self._tab) + 1) % len(names)]
        self.query_one("#detail", Lines).scroll_home(animate=False)
        self.redraw()

    def action_history(self, by: int) -> None:
        """The next or the previous node; history is on `-` here."""
        facts = self.brctl.facts
        if facts is None or not facts.nodes:
            return
        names = sorted((fact.name for fact in facts.nodes), key=natural_key)
        here = names.index(self.address.item) if self.address.item in names else 0
        self.open(Address("node", names[(here + by) % len(names)]))

    def action_evidence(self) -> None:
        self._tab = "Raw"
        self.redraw()

    def action_timeline(self) -> None:
        self._tab = "Events"
        self.redraw()
