"""Screen 5: incidents with their time line, notes and export."""

from brctl.tui.rows.row import Row
from brctl.tui.screens.list_screen import ListScreen
from brctl.tui.screens.timeline import incident_list, incidents_of, timeline_rows
from brctl.tui.session.facts import Facts
from brctl.view.incident import Incident, markdown


class IncidentsScreen(ListScreen):
    """`n` adds a note here, `e` exports the post-mortem."""

    view_name = "incidents"
    kind = "incident"
    unavailable = frozenset({"rollback", "colour"})

    def list_rows(self, facts: Facts) -> list[Row]:
        return incident_list(incidents_of(facts), self.brctl.times)

    def detail_rows(self, facts: Facts, item: str, width: int) -> list[Row] | None:
        incident = _find(facts, item)
        if incident is None:
            return None
        return timeline_rows(incident, width, self.brctl.times.since(incident.began_at))

    def action_next_bad(self, by: int) -> None:
        """`n` adds a note, as in every incident tool; `N` still goes up."""
        if by < 0:
            super().action_next_bad(by)
        elif self.item:
            self.brctl.open_note(self.item)

    def action_evidence(self) -> None:
        """Write the post-mortem as Markdown and say where it is."""
        facts = self.brctl.facts
        incident = _find(facts, self.item) if facts else None
        if incident is not None:
            self.brctl.export(f"{incident.id}.md", markdown(incident, self.brctl.clock()))


def _find(facts: Facts, item: str) -> Incident | None:
    return next((i for i in incidents_of(facts) if i.id == item), None)
