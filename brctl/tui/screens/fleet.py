"""Screen 1: every node as one character, and what needs a person."""

from collections.abc import Iterable

from textual import on
from textual.widget import Widget

from brctl.model.nodeset import natural_key
from brctl.model.units import describe_duration
from brctl.tui.address import Address
from brctl.tui.rows.attention import attention_rows, worst_first
from brctl.tui.rows.filters import node_matcher
from brctl.tui.rows.measures import MEASURES
from brctl.tui.rows.row import Row, Tone, row, safe
from brctl.tui.rows.state_letters import APPEARANCES
from brctl.tui.screens.view_screen import ViewScreen
from brctl.tui.session.facts import Facts, NodeFact
from brctl.tui.target import Target, marked, target_of
from brctl.tui.widgets.grid import Colouring, by_age, by_health, by_job, by_measure, by_owner
from brctl.tui.widgets.heatmap import Heatmap
from brctl.tui.widgets.lines import Lines

COLOURS = ("health", "job", "age", "owner", *MEASURES)


class FleetScreen(ViewScreen):
    """The heatmap and the list of what needs attention."""

    view_name = "fleet"
    unavailable = frozenset({"rollback", "sort", "sort_back", "times"})

    def __init__(self, address: Address | None = None) -> None:
        super().__init__(address)
        self._colour = "health"

    def body(self) -> Iterable[Widget]:
        yield Heatmap()
        yield Lines(id="attention")
        yield Lines(id="readout", fixed=True)

    def on_mount(self) -> None:
        super().on_mount()
        self.set_focus(self.query_one(Heatmap))

    @property
    def heatmap(self) -> Heatmap:
        return self.query_one(Heatmap)

    def shown(self, facts: Facts) -> list[NodeFact]:
        """The nodes that the filter lets through."""
        wanted = node_matcher(self.address.filter, facts)
        return [fact for fact in facts.nodes if wanted(fact)]

    def show(self, facts: Facts) -> None:
        shown = self.shown(facts)
        self.heatmap.show(shown, self._colouring(facts))
        attention = self.query_one("#attention", Lines)
        attention.show(attention_rows(facts, shown, max(attention.size.width - 2, 28)))
        self._draw_readout()

    def _colouring(self, facts: Facts) -> Colouring:
        colour = self._colour
        if colour == "job":
            return by_job([job.name for job in facts.jobs])
        if colour == "age":
            return by_age(self.brctl.clock())
        if colour == "owner":
            return by_owner
        if colour in MEASURES:
            measure = MEASURES[colour]
            return by_measure(self.brctl.measured.get(colour, {}), measure.low, measure.high)
        return by_health

    def _draw_readout(self) -> None:
        facts = self.brctl.facts
        fact = facts.node(self.heatmap.name_here) if facts else None
        self.query_one("#readout", Lines).show([self._readout(fact)])

    def _readout(self, fact: NodeFact | None) -> Row:
        if fact is None:
            return row((f"colour: {self._colour}   no node matches", Tone.WARN))
        appearance = APPEARANCES[fact.state]
        marked = f"  {len(self.heatmap.marks)} marked" if self.heatmap.marks else ""
        labels = " ".join(f"{k} {v}" for k, v in fact.node.labels.items() if k in ("rack", "leaf"))
        parts = [labels, f"job {fact.job}" if fact.job else "", fact.check, fact.detail]
        if fact.cordon:
            parts.append(f"cordoned by {fact.cordon[0]}: {fact.cordon[1]}")
        if fact.at:
            age_s = (self.brctl.clock() - fact.at).total_seconds()
            parts.append(f"asked {describe_duration(max(age_s, 0))} ago")
        text = "  ".join(safe(part, 160) for part in parts if part)
        return row(
            (f"{appearance.letter} {health_word(fact)} ", appearance.tone),
            (safe(fact.name, 60), Tone.HEAD),
            f"  {text}{marked}",
            (f"   colour: {self._colour}", Tone.DIM),
        )

    @on(Heatmap.Moved)
    def node_moved(self) -> None:
        self._draw_readout()
        self.draw_hints()

    @on(Heatmap.Chosen)
    def node_chosen(self) -> None:
        self.action_detail()

    def target(self) -> Target:
        facts, attention = self.brctl.facts, self.query_one("#attention", Lines)
        if facts is None:
            return Target()
        if self.heatmap.marks:
            return Target(tuple(sorted(self.heatmap.marks, key=natural_key)))
        if attention.marks:
            return marked(attention.marks, facts)
        if self.focused is attention:
            return target_of(attention.key, facts)
        name = self.heatmap.name_here
        return target_of(f"node:{name}", facts) if name else Target()

    def step_back(self) -> bool:
        attention = self.query_one("#attention", Lines)
        if self.heatmap.marks or attention.marks:
            self.heatmap.marks.clear()
            attention.clear_marks()
            self.redraw()
            return True
        return super().step_back()

    def action_mark(self) -> None:
        if self.focused is self.heatmap:
            self.heatmap.toggle_mark()
        else:
            super().action_mark()
        self._draw_readout()

    def action_mark_range(self) -> None:
        if self.focused is self.heatmap:
            self.heatmap.mark_range()
        else:
            super().action_mark_range()
        self._draw_readout()

    def action_next_bad(self, by: int) -> None:
        """Step through verdicts and bad nodes, worst first."""
        facts = self.brctl.facts
        if facts is None:
            return
        suspects = [n for s in facts.open_verdicts for n in s.verdict.nodes]
        bad = list(dict.fromkeys([*suspects, *(f.name for f in worst_first(self.shown(facts)))]))
        if not bad:
            self._next_job(facts)
            return
        here = self.heatmap.name_here
        target = bad.index(here) + by if here in bad else (0 if by > 0 else -1)
        self.set_focus(self.heatmap)
        self.heatmap.go_to(bad[target % len(bad)])

    def _next_job(self, facts: Facts) -> None:
        """No node is bad; a job may stand all the same."""
        if facts.troubled_jobs:
            self.brctl.go(Address("jobs", facts.troubled_jobs[0].job))
        else:
            self.brctl.say("every node shown is ok")

    def action_colour(self) -> None:
        self._colour = COLOURS[(COLOURS.index(self._colour) + 1) % len(COLOURS)]
        if self._colour in MEASURES:
            self.brctl.measure(self._colour)
        self.redraw()


def health_word(fact: NodeFact) -> str:
    """The state in a word."""
    return fact.state.value.upper()
