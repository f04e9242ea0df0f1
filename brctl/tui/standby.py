"""Screen 6: backup nodes and checkpoints, what a swap would use."""

from collections.abc import Iterable

from textual.widget import Widget

from brctl.model.inventory import NodeRole
from brctl.model.job import Job
from brctl.tui.facts import Facts, NodeFact
from brctl.tui.frame import Frame
from brctl.tui.letters import LOOKS
from brctl.tui.lines import Lines
from brctl.tui.rows import Row, Tone, blank, cut, heading, row, safe, table
from brctl.tui.times import Times


def standby_rows(facts: Facts, times: Times) -> list[Row]:
    """One line a standby; then where each job saves."""
    spares = [f for f in facts.nodes if f.node.role is NodeRole.STANDBY]
    free = sum(f.cordon is None and not f.job for f in spares)
    rows = [row(("standby ", Tone.HEAD), f"{len(spares)} in the inventory, {free} neither cordoned"
                " nor carrying a job")]  # fmt: skip
    if spares:
        rows += table(
            ("", "NODE", "STATE", "JOB", "ASKED", "NOTE"), (_line(f, times) for f in spares)
        )
    return [*rows, blank(), heading("checkpoints"), *_checkpoints(facts)]


def _line(fact: NodeFact, times: Times) -> tuple[tuple[tuple[str, Tone] | str, ...], str]:
    look = LOOKS[fact.state]
    note = ": ".join(fact.cordon) if fact.cordon else f"{fact.check} {fact.detail}".strip()
    return (
        (look.letter, look.tone), safe(fact.name, 40), (fact.state.value, look.tone),
        safe(fact.job or "-", 30), times.of(fact.at), safe(note, 200),
    ), f"node:{fact.name}"  # fmt: skip


def _checkpoints(facts: Facts) -> list[Row]:
    if not facts.jobs:
        return [row(("no job is declared", Tone.DIM))]
    return [_saves(job) for job in facts.jobs]


def _saves(job: Job) -> Row:
    name = safe(job.name, 40)
    where = f"{safe(str(job.checkpoint_dir), 120)}  {job.checkpoint_layout}"
    return row((f"{name}  ", Tone.HEAD), f"{where}   newest whole one: brctl ckpt latest {name}")


class StandbyScreen(Frame):
    """One list."""

    place = "standby"
    unavailable = frozenset({"approve", "deny", "rollback", "colour", "sort"})

    def body(self) -> Iterable[Widget]:
        yield Lines(id="list")

    def on_mount(self) -> None:
        super().on_mount()
        self.set_focus(self.query_one("#list"))

    def show(self, facts: Facts) -> None:
        rows = standby_rows(facts, self.brctl.times)
        self.query_one("#list", Lines).show(cut(self.filtered(rows)))
