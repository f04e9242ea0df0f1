"""The two lines on top of every screen: who we are, how the fleet is, how old that news is."""

from datetime import datetime

from brctl.model.jobs.job_look import JobState
from brctl.model.nodeset import fold
from brctl.model.units import describe_duration
from brctl.playbook.run import Run
from brctl.tui.address import ROOTS
from brctl.tui.rows.row import Row, Span, Tone, row, safe
from brctl.tui.rows.state_letters import APPEARANCES
from brctl.tui.session.facts import Facts, NodeState

WAITS_SHOWN = 2
"""Waiting runs that get a line of their own; their number is always told."""

OLD_S = 600.0
"""Two intervals of the five minutes at which `brctl schedule` sweeps."""


def tabs_row(view_name: str, note: str = "", width: int = 200) -> Row:
    """The screens with their numbers, the open one in brackets; closer where it is tight."""
    apart = " " if len("brctl ") + sum(len(name) + 4 for name in ROOTS) <= width else ""
    spans: list[Span] = [("brctl ", Tone.HEAD)]
    if note:
        spans.append((f"{note}  ", Tone.WARN))
    for number, name in enumerate(ROOTS, start=1):
        title = name.capitalize()
        here = name == view_name
        spans.append((f" {number} {title}{apart}" if not here else f"[{number} {title}]",
                      Tone.HEAD if here else Tone.DIM))  # fmt: skip
    return Row(tuple(spans))


def screen_at(tabs: Row, column: int) -> int:
    """The number of the screen whose tab covers a column; 0 beside all tabs."""
    start = 0
    for text, _ in tabs.spans:
        number = text[1:2]
        if start <= column < start + len(text):
            return int(number) if number.isdecimal() else 0
        start += len(text)
    return 0


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
    rows = [
        row(*spans),
        _second(facts, now_at, busy),
        *map(_waits, facts.waiting_runs[:WAITS_SHOWN]),
    ]
    return [*rows, _trouble(facts)] if facts.troubles else rows


def _second(facts: Facts, now_at: datetime, busy: str) -> Row:
    running, waiting = sum(run.alive for run in facts.runs), len(facts.waiting_runs)
    spans: list[Span | str] = [
        *([(f"{busy}   ", Tone.WARN)] if busy else []),
        _age(facts, now_at), "   ", *_jobs(facts),
        f"   verdicts {len(facts.open_verdicts)} open   runs {running}",
        *([(f", {waiting} waiting", Tone.WARN)] if waiting else []),
        f"   guard: {facts.guard or 'not read yet'}",
    ]  # fmt: skip
    return row(*spans)


def _jobs(facts: Facts) -> list[Span | str]:
    """How many jobs there are, and how many of them stand, are unknown or were never looked at."""
    looks = [facts.looks.get(job.name) for job in facts.jobs]
    counted = [
        (sum(look is not None and look.state is JobState.STALLED for look in looks),
         "STALLED", Tone.CRIT),
        (sum(look is not None and look.state is JobState.UNKNOWN for look in looks),
         "unknown", Tone.UNKNOWN),
        (sum(look is None for look in looks), "not looked at", Tone.UNKNOWN),
    ]  # fmt: skip
    told: list[Span] = [(f"{count} {word}", tone) for count, word, tone in counted if count]
    spans: list[Span | str] = [f"jobs {len(looks)}"]
    for number, span in enumerate(told):
        spans += [", " if number else ": ", span]
    return spans


def _waits(run: Run) -> Row:
    what = safe(run.asked("why") or f"before {run.asked('step')}", 80)
    return row(
        (f"{run.name} WAITS ", Tone.WARN), f"{what}: A approves, D denies  ",
        (f"{safe(run.playbook.name, 40)} {safe(fold(run.nodes), 60)}", Tone.DIM),
    )  # fmt: skip


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
