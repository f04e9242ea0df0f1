"""Screen 2: verdicts, and the evidence chain of the one under the cursor."""

from collections.abc import Iterable

from textual import on
from textual.widget import Widget

from brctl.engine.verdict_store import StoredVerdict
from brctl.tui.address import Address
from brctl.tui.chain import raw_rows, verdict_list, verdict_rows
from brctl.tui.facts import Facts
from brctl.tui.frame import Frame
from brctl.tui.lines import Lines
from brctl.tui.rows import Tone, cut, row
from brctl.tui.target import Target, target_of


class VerdictsScreen(Frame):
    """The list above, the chain below."""

    place = "verdicts"
    unavailable = frozenset({"approve", "deny", "rollback", "colour"})

    def __init__(self, address: Address | None = None) -> None:
        super().__init__(address)
        self._raw = 0

    def body(self) -> Iterable[Widget]:
        yield Lines(id="list")
        yield Lines(id="detail")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#list").focus()

    def show(self, facts: Facts) -> None:
        rows = self.filtered(verdict_list(facts.verdicts, self.brctl.times))
        listing = self.query_one("#list", Lines)
        listing.show(cut(rows))
        if self.address.item:
            listing.go_to(f"verdict:{self.address.item}")
        self._draw_detail(facts)

    def chosen(self, facts: Facts) -> StoredVerdict | None:
        """The verdict under the cursor of the list."""
        return facts.verdict(self.query_one("#list", Lines).key.partition(":")[2])

    def _draw_detail(self, facts: Facts) -> None:
        detail = self.query_one("#detail", Lines)
        stored = self.chosen(facts)
        width = max(self.width - 4, 40)
        if stored is None:
            detail.show([row(("no verdict chosen", Tone.DIM))])
        elif self._raw:
            detail.show(raw_rows(stored.verdict, self._raw, width))
        else:
            first = min((e.at for e in stored.verdict.evidence if e.at), default=None)
            detail.show(verdict_rows(stored, width, self.brctl.times.since(first)))

    @on(Lines.Moved, "#list")
    def chose(self, message: Lines.Moved) -> None:
        if message.key:
            self.address = Address(self.place, message.key.partition(":")[2], self.address.filter)
        if self.brctl.facts:
            self._raw = 0
            self._draw_detail(self.brctl.facts)

    def target(self) -> Target:
        facts = self.brctl.facts
        return target_of(self.query_one("#list", Lines).key, facts) if facts else Target()

    def action_detail(self) -> None:
        self.query_one("#detail").focus()

    def action_why(self) -> None:
        self.query_one("#detail").focus()

    def action_evidence(self) -> None:
        """The raw line behind the evidence under the cursor, or behind the first."""
        kind, _, rest = self.query_one("#detail", Lines).key.partition(":")
        self._raw = int(rest.rpartition(":")[2]) if kind == "evidence" else 1
        self.query_one("#detail").focus()
        if self.brctl.facts:
            self._draw_detail(self.brctl.facts)

    def step_back(self) -> bool:
        if self._raw:
            self._raw = 0
            self.redraw()
            return True
        if self.focused is self.query_one("#detail"):
            self.query_one("#list").focus()
            return True
        return super().step_back()
