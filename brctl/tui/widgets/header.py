"""The two lines on top of every screen: who we are, how the fleet is, how old that news is."""

from datetime import datetime

from brctl.model.units import describe_duration
from brctl.tui.address import ROOTS
from brctl.tui.rows.row import Row, Span, Tone, row, safe
from brctl.tui.rows.state_letters import APPEARANCES
from brctl.tui.session.facts import Facts, NodeState

OLD_S = 600.0
"""Two intervals of the five minutes at which `brctl schedule` sweeps."""


def tabs_row(view_name: str, note: str = "") -> Row:
    """The screens with their numbers; the open one stands in brackets."""
    spans: list[Span] = [("brctl ", Tone.HEAD)]
    for number, name in enumerate(ROOTS, start=1):
        title = name.capitalize()
        here = name == view_name
        spans.append((f" {number} {title} " if not here else f"[{number} {title}]",
                      Tone.HEAD if here else Tone.DIM))  # fmt: skip
    if note:
        spans.append((f"  {note}", Tone.WARN))
    return Row(tuple(spans))


def header_rows(facts: Facts, now_at: datetime, *, busy: str = "") -> list[Row]:
    """Counts, then age, jobs, verdicts, runs and the eviction budget; troubles in a red bar."""
    mode = "read-only" if facts.readonly else "RW"
    spans: list[Span | str] = [
        (safe(facts.context, 30), Tone.HEAD),
        f" {facts.scheduler} {mode}({safe(facts.user, 20)})  {len(facts.nodes)} nodes:",
    ]
    for state in NodeState:
        count = sum(fact.state is state for fact in facts.nodes)
        if count or state is NodeState.OK:
            spans.append(
                (f" {count} {state.value}", APPEARANCES[state].tone if count else Tone.DIM)
            )
    rows = [row(*spans), _second(facts, now_at, busy)]
    return [*rows, _trouble(facts)] if facts.troubles else rows


def _second(facts: Facts, now_at: datetime, busy: str) -> Row:
    running = sum(run.alive for run in facts.runs)
    spans: list[Span | str] = [
        _age(facts, now_at),
        f"   jobs {len(facts.jobs)}   verdicts {len(facts.open_verdicts)} open   runs {running}",
        f"   guard: {facts.guard or 'not read yet'}",
    ]
    if busy:
        spans.append((f"   {busy}", Tone.WARN))
    return row(*spans)


def _age(facts: Facts, now_at: datetime) -> Span:
    if facts.swept_at is None:
        return ("never swept: press r", Tone.WARN)
    age_s = max((now_at - facts.swept_at).total_seconds(), 0.0)
    old = age_s > OLD_S
    return (f"data {describe_duration(age_s)} old{' (old)' if old else ''}",
            Tone.WARN if old else Tone.PLAIN)  # fmt: skip


def _trouble(facts: Facts) -> Row:
    more = f" (and {len(facts.troubles) - 1} more)" if len(facts.troubles) > 1 else ""
    return row((f"! cannot read {safe(facts.troubles[0], 200)}{more}", Tone.CRIT))
