"""Screen 3: runs, followed through their journals; closing this screen stops none of them."""

from collections.abc import Iterable

from textual import on
from textual.widget import Widget

from brctl.tui.address import Address
from brctl.tui.facts import Facts, RunFact
from brctl.tui.frame import Frame
from brctl.tui.lines import Lines
from brctl.tui.rows import Tone, cut, heading, row
from brctl.tui.run_rows import event_line, run_list, run_rows
from brctl.tui.target import Target, target_of


class RunsScreen(Frame):
    """The list above; steps, guards and output of the chosen run below."""

    place = "runs"
    unavailable = frozenset({"colour", "sort"})

    def __init__(self, address: Address | None = None) -> None:
        super().__init__(address)
        self._output = False

    def body(self) -> Iterable[Widget]:
        yield Lines(id="list")
        yield Lines(id="detail")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#list").focus()

    def show(self, facts: Facts) -> None:
        listing = self.query_one("#list", Lines)
        listing.show(cut(self.filtered(run_list(facts.runs, self.brctl.times))))
        if self.address.item:
            listing.go_to(f"run:{self.address.item}")
        self._draw_detail(facts)

    def chosen(self, facts: Facts) -> RunFact | None:
        """The run under the cursor of the list."""
        return facts.run(self.query_one("#list", Lines).key.partition(":")[2])

    def _draw_detail(self, facts: Facts) -> None:
        run, detail = self.chosen(facts), self.query_one("#detail", Lines)
        if run is None:
            detail.show([row(("no run chosen", Tone.DIM))])
            return
        times = self.brctl.times.since(run.started_at)
        rows = run_rows(run, max(self.width - 4, 40), times)
        if self._output:
            rows = [heading(f"{run.name}: journal")]
            rows += [event_line(event, times) for event in run.events[-400:]]
        detail.show(rows)

    @on(Lines.Moved, "#list")
    def chose(self, message: Lines.Moved) -> None:
        if message.key:
            self.address = Address(self.place, message.key.partition(":")[2], self.address.filter)
        if self.brctl.facts:
            self._draw_detail(self.brctl.facts)

    def target(self) -> Target:
        facts = self.brctl.facts
        return target_of(self.query_one("#list", Lines).key, facts) if facts else Target()

    def action_detail(self) -> None:
        self.query_one("#detail").focus()

    def action_evidence(self) -> None:
        """The journal itself."""
        self._output = not self._output
        self.redraw()

    def step_back(self) -> bool:
        if self._output:
            self._output = False
            self.redraw()
            return True
        if self.focused is self.query_one("#detail"):
            self.query_one("#list").focus()
            return True
        return super().step_back()
