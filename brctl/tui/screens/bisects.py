"""Screen 4: bisections, round by round, as they are written down."""

from brctl.tui.rows.bisect_rows import bisect_list, bisect_rows
from brctl.tui.rows.row import Row
from brctl.tui.screens.list_screen import ListScreen
from brctl.tui.session.facts import Facts


class BisectScreen(ListScreen):
    """Follows the lines of `nccl bisect`; leaving it stops no search."""

    view_name = "bisect"
    kind = "bisect"
    unavailable = frozenset({"rollback", "colour"})

    def list_rows(self, facts: Facts) -> list[Row]:
        return bisect_list(facts.bisects)

    def detail_rows(self, facts: Facts, item: str, width: int) -> list[Row] | None:
        found = next((one for one in facts.bisects if one.id == item), None)
        return bisect_rows(found, width) if found else None
