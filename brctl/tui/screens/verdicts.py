"""Screen 2: verdicts, and the evidence chain of the one under the cursor."""

from brctl.tui.address import Address
from brctl.tui.rows.row import Row
from brctl.tui.rows.verdict_rows import raw_rows, verdict_list, verdict_rows
from brctl.tui.screens.list_screen import ListScreen
from brctl.tui.session.facts import Facts


class VerdictsScreen(ListScreen):
    """`e` on a line of evidence shows the raw line it rests on."""

    view_name = "verdicts"
    kind = "verdict"
    unavailable = frozenset({"rollback", "colour"})

    def __init__(self, address: Address | None = None) -> None:
        super().__init__(address)
        self._raw = 0

    def list_rows(self, facts: Facts) -> list[Row]:
        return verdict_list(facts.verdicts, self.brctl.times)

    def detail_rows(self, facts: Facts, item: str, width: int) -> list[Row] | None:
        stored = facts.verdict(item)
        if stored is None:
            return None
        if self._raw:
            return raw_rows(stored.verdict, self._raw, width)
        first = min((e.at for e in stored.verdict.evidence if e.at), default=None)
        return verdict_rows(stored, width, self.brctl.times.since(first))

    def left_item(self) -> None:
        self._raw = 0

    def action_why(self) -> None:
        self.set_focus(self.detail)

    def action_evidence(self) -> None:
        """The raw line behind the evidence under the cursor, or behind the first."""
        kind, _, rest = self.detail.key.partition(":")
        self._raw = int(rest.rpartition(":")[2]) if kind == "evidence" else 1
        self.set_focus(self.detail)
        self.redraw()

    def step_back(self) -> bool:
        if self._raw:
            self._raw = 0
            self.redraw()
            return True
        return super().step_back()
