"""Screen 6: backup nodes and checkpoints, what a swap would use."""

from datetime import datetime

from brctl.engine.standby.pool import Standby, age_s, still_parked
from brctl.model.jobs.job import Job
from brctl.model.units import describe_duration
from brctl.tui.rows.row import Row, Tone, blank, cut, heading, row, safe, table
from brctl.tui.rows.state_letters import APPEARANCES
from brctl.tui.rows.times import Times
from brctl.tui.screens.one_list import OneListScreen
from brctl.tui.session.facts import Facts, NodeFact


def standby_rows(facts: Facts, times: Times) -> list[Row]:
    """One line a node of the pool, or where processes wait; then where each job saves."""
    pool = facts.pool
    members = pool.members(facts.inventory)
    shown = [f for n in dict.fromkeys([*members, *pool.parked()]) if (f := facts.node(n))]
    spares = [f for f in shown if f.name in members]
    free = sum(f.cordon is None and not f.job for f in spares)
    rows = [row(("standby ", Tone.HEAD), f"{len(spares)} in the pool, {free} neither cordoned"
                " nor carrying a job")]  # fmt: skip
    if shown:
        rows += table(
            ("", "NODE", "STATE", "JOB", "ASKED", "PARKED", "NOTE"),
            (_line(fact, facts, times) for fact in shown),
        )
    if pool.parked():
        rows.append(row(("parked: as last asked; now: brctl standby list", Tone.DIM)))
    return [*rows, blank(), heading("checkpoints"), *_checkpoints(facts)]


def _line(
    fact: NodeFact, facts: Facts, times: Times
) -> tuple[tuple[tuple[str, Tone] | str, ...], str]:
    appearance, known = APPEARANCES[fact.state], facts.pool.of(fact.name)
    note = ": ".join(fact.cordon) if fact.cordon else f"{fact.check} {fact.detail}".strip()
    return (
        (appearance.letter, appearance.tone), safe(fact.name, 40),
        (fact.state.value, appearance.tone),
        safe(fact.job or "-", 30), times.of(fact.at), _parked(known, facts.read_at),
        safe(note or known.note, 200),
    ), f"node:{fact.name}"  # fmt: skip


def _parked(known: Standby, now: datetime) -> str:
    """For which job how many wait, and how old that knowledge is; never more than was seen."""
    if not known.parked_for:
        return "-"
    job, age = safe(known.parked_for, 30), age_s(known.parked_at, now)
    if age is None or not still_parked(known, now):
        return f"{job}: lease over"
    beside = " beside" if known.beside else ""
    return f"{job}: {known.parked_ranks}{beside}, {describe_duration(max(age, 0.0))} ago"


def _checkpoints(facts: Facts) -> list[Row]:
    if not facts.jobs:
        return [row(("no job is declared", Tone.DIM))]
    return [_saves(job) for job in facts.jobs]


def _saves(job: Job) -> Row:
    name = safe(job.name, 40)
    where = f"{safe(str(job.checkpoint_dir), 120)}  {job.checkpoint_layout}"
    return row((f"{name}  ", Tone.HEAD), f"{where}   newest whole one: brctl ckpt latest {name}")


class StandbyScreen(OneListScreen):
    """One list."""

    view_name = "standby"
    unavailable = frozenset({"rollback", "colour", "sort", "sort_back"})

    def show(self, facts: Facts) -> None:
        rows = standby_rows(facts, self.brctl.times)
        self.listing.show(cut(self.filtered(rows)))
