"""Screen 5: incidents with their time line, notes and export."""

from collections.abc import Iterable

from textual import on
from textual.widget import Widget

from brctl.tui.address import Address
from brctl.tui.facts import Facts
from brctl.tui.frame import Frame
from brctl.tui.lines import Lines
from brctl.tui.rows import Tone, cut, row
from brctl.tui.target import Target, target_of
from brctl.tui.timeline import Incident, incident_list, incidents_of, markdown, timeline_rows


class IncidentsScreen(Frame):
    """The list above, the time line below."""

    place = "incidents"
    unavailable = frozenset({"approve", "deny", "rollback", "colour", "sort"})

    def body(self) -> Iterable[Widget]:
        yield Lines(id="list")
        yield Lines(id="detail")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#list").focus()

    def show(self, facts: Facts) -> None:
        incidents = incidents_of(facts)
        listing = self.query_one("#list", Lines)
        listing.show(cut(self.filtered(incident_list(incidents, self.brctl.times))))
        if self.address.item:
            listing.go_to(f"incident:{self.address.item}")
        self._draw(incidents)

    def _chosen(self, incidents: Iterable[Incident]) -> Incident | None:
        wanted = self.query_one("#list", Lines).key.partition(":")[2]
        return next((i for i in incidents if i.id == wanted), None)

    def _draw(self, incidents: Iterable[Incident]) -> None:
        incident, detail = self._chosen(incidents), self.query_one("#detail", Lines)
        if incident is None:
            detail.show([row(("no incident chosen", Tone.DIM))])
            return
        times = self.brctl.times.since(incident.began_at)
        detail.show(timeline_rows(incident, max(self.width - 4, 40), times))

    @on(Lines.Moved, "#list")
    def chose(self, message: Lines.Moved) -> None:
        if message.key:
            self.address = Address(self.place, message.key.partition(":")[2], self.address.filter)
        if self.brctl.facts:
            self._draw(incidents_of(self.brctl.facts))

    def target(self) -> Target:
        facts = self.brctl.facts
        return target_of(self.query_one("#list", Lines).key, facts) if facts else Target()

    def action_detail(self) -> None:
        self.query_one("#detail").focus()

    def action_next_bad(self, by: int) -> None:
        """`n` adds a note here, as in every incident tool; `N` still goes up."""
        if by < 0:
            super().action_next_bad(by)
            return
        if self.target().verdict:
            self.brctl.open_note(self.target().verdict)

    def action_evidence(self) -> None:
        """Write the post-mortem as Markdown and say where it is."""
        facts = self.brctl.facts
        incident = self._chosen(incidents_of(facts)) if facts else None
        if incident is not None:
            self.brctl.export(f"{incident.id}.md", markdown(incident, self.brctl.clock()))

    def step_back(self) -> bool:
        if self.focused is self.query_one("#detail"):
            self.query_one("#list").focus()
            return True
        return super().step_back()
