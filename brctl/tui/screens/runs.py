"""Screen 3: runs, followed through their journals; closing this screen stops none of them."""

from brctl.tui.address import Address
from brctl.tui.rows.row import Row, heading
from brctl.tui.rows.run_rows import event_line, run_list, run_rows
from brctl.tui.screens.list_screen import ListScreen
from brctl.tui.session.facts import Facts

EVENTS_SHOWN = 400


class RunsScreen(ListScreen):
    """`e` turns between the steps and the journal itself."""

    view_name = "runs"
    kind = "run"
    unavailable = frozenset({"colour"})

    def __init__(self, address: Address | None = None) -> None:
        super().__init__(address)
        self._journal = False

    def list_rows(self, facts: Facts) -> list[Row]:
        return run_list(facts.runs, self.brctl.times)

    def detail_rows(self, facts: Facts, item: str, width: int) -> list[Row] | None:
        run = facts.run(item)
        if run is None:
            return None
        times = self.brctl.times.since(run.began_at)
        if not self._journal:
            return run_rows(run, width, times)
        shown = run.events[-EVENTS_SHOWN:]
        title = f"{run.name}: last {len(shown)} of {len(run.events)} lines of its journal"
        return [heading(title), *(event_line(event, times) for event in shown)]

    def action_evidence(self) -> None:
        """The journal itself, or the steps again."""
        self._journal = not self._journal
        self.redraw()

    def step_back(self) -> bool:
        if self._journal:
            self._journal = False
            self.redraw()
            return True
        return super().step_back()
