"""Screen 8: the watcher of this context, followed on disk; closing it stops nothing."""

from brctl.tui.rows.row import cut
from brctl.tui.rows.watch_rows import watch_rows
from brctl.tui.screens.one_list import OneListScreen
from brctl.tui.session.facts import Facts


class WatchScreen(OneListScreen):
    """One list; a suspicion or a decision is a target for the keys of its verdict."""

    view_name = "watch"
    unavailable = frozenset({"rollback", "colour", "sort", "sort_back"})

    def show(self, facts: Facts) -> None:
        rows = watch_rows(facts, max(self.width - 4, 40), self.brctl.times, self.brctl.clock())
        self.listing.show(cut(self.filtered(rows)))
