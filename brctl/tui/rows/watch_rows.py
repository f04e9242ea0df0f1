"""A watcher as rows: who leads, what is suspected, how far the gates are, what it decided; pure."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from brctl.model.nodeset import fold
from brctl.model.units import describe_duration
from brctl.model.watch.policy import WatchLimits
from brctl.model.watch.snapshot import WatchSnapshot
from brctl.model.watch.state import WatchRecord, WatchState
from brctl.tui.rows.row import Row, Tone, blank, heading, paragraph, row, safe, table
from brctl.tui.rows.times import Times
from brctl.tui.session.facts import Facts
from brctl.view.watch.pages import FRESH
from brctl.view.watch.record import record_words
from brctl.watch.gate_counts import gate_counts
from brctl.watch.rules import RULES

LABEL = "{:11}"
RECONNECTING_SHOWN = 5

_TONES: Mapping[str, Tone] = {
    "suspicion": Tone.WARN, "confirmed": Tone.WARN, "verdict": Tone.HEAD, "decision": Tone.CORDON,
    "ended": Tone.OK, "error": Tone.CRIT, "breaker-open": Tone.CRIT, "network": Tone.UNKNOWN,
}  # fmt: skip


def watch_rows(facts: Facts, width: int, times: Times, now_at: datetime) -> list[Row]:
    """The whole screen: what stands above, what happened below, the newest first."""
    seen = facts.watch
    if seen.problem:
        unknown = f"UNKNOWN: the watcher's folder cannot be read: {safe(seen.problem, 300)}"
        return paragraph(LABEL.format("watcher"), unknown, width, Tone.UNKNOWN)
    return [
        *_leader(seen, facts, width, now_at), *_nodes(seen, width), blank(),
        *_suspicions(seen.state, times), blank(),
        *_gates(seen, now_at), blank(),
        *_feed(seen.records, times),
    ]  # fmt: skip


def _leader(seen: WatchSnapshot, facts: Facts, width: int, now_at: datetime) -> Iterator[Row]:
    told_at, label = seen.told_at, LABEL.format("watcher")
    start = f"start one: brctl watch --mode observe --context {safe(facts.context, 60)}"
    if seen.stopped:
        lift = f"{safe(seen.stopped, 200)}; brctl watch stop --lift takes it back"
        yield from paragraph(label, f"STOPPED: {lift}", width, Tone.CORDON)
    elif told_at is None:
        yield from paragraph(label, f"none watches here; {start}", width, Tone.UNKNOWN)
    elif now_at - told_at >= FRESH:
        age = describe_duration((now_at - told_at).total_seconds())
        gone = f"NONE AT WORK: {safe(seen.text('holder'), 80)} told something {age} ago, and since"
        yield from paragraph(label, f"{gone} nothing; {start}", width, Tone.UNKNOWN)
    else:
        yield from paragraph(label, _at_work(seen, facts.machine, now_at), width, Tone.OK)
    for name, text in _troubles(seen):
        yield from paragraph(LABEL.format(name), safe(text, 300), width, Tone.CRIT)


def _troubles(seen: WatchSnapshot) -> Iterator[tuple[str, str]]:
    """What keeps the watcher from looking or acting, each under its name."""
    for name in ("problem", "scheduler"):
        if text := seen.text(name):
            yield name, text
    if seen.state is None:
        return
    if seen.state.network:
        yield "network", seen.state.network
    for rule, nodes in seen.state.crowds.items():
        yield "crowd", f"{rule}: {len(nodes)} nodes at once, {fold(nodes)}"
    for about, event in seen.state.untold.items():
        yield "untold", f"{about}: no sink took the page yet: {event.text}"


def _at_work(seen: WatchSnapshot, machine: str, now_at: datetime) -> str:
    """Its mode, who it is, and whether that is this machine: there a person can look at it."""
    holder = seen.text("holder")
    elsewhere = "" if holder.startswith(f"{machine} ") else ", another machine"
    up_s = (now_at - seen.state.began_at).total_seconds() if seen.state else 0.0
    up = f", up {describe_duration(max(up_s, 0.0))}" if seen.state else ""
    policy = f", {safe(seen.text('policy'), 120) or 'built-in policy'}"
    return f"{safe(seen.text('mode'), 20)}  leader {safe(holder, 80)}{elsewhere}{up}{policy}"


def _nodes(seen: WatchSnapshot, width: int) -> Iterator[Row]:
    known, talking = seen.count("nodes"), seen.count("talking")
    if known is None or talking is None:
        return
    lost = seen.reconnecting
    text = f"{known}: {talking} talking, {known - talking} reconnecting"
    tone = Tone.PLAIN if talking == known else Tone.WARN
    yield row((LABEL.format("nodes"), Tone.HEAD), (text, tone))
    for node, why in list(lost.items())[:RECONNECTING_SHOWN]:
        said = f"{safe(node, 60)}: {safe(why, 200) or 'no connection yet'}"
        yield row(LABEL.format(""), (said, Tone.UNKNOWN), key=f"node:{node}")
    if known - talking > RECONNECTING_SHOWN:
        yield row(LABEL.format(""), (f"{known - talking} in all", Tone.UNKNOWN))
    if silent := seen.names("silent"):
        yield from paragraph(LABEL.format("silent"), safe(fold(silent), 400), width, Tone.UNKNOWN)


def _suspicions(state: WatchState | None, times: Times) -> list[Row]:
    held = list(state.suspicions.values()) if state else []
    if not held:
        said = "nothing is suspected" if state else "no watcher left its suspicions here"
        return [row((LABEL.format("suspected"), Tone.HEAD), (said, Tone.DIM))]
    return table(
        ("SUSPECTED", "OF", "SINCE", "LOOKS", "STATE", "VERDICT", "WHAT"),
        (
            (
                (
                    s.rule, safe(s.subject, 40), times.of(s.since), str(s.looks),
                    ("confirmed" if s.confirmed_at else "seen",
                     Tone.CRIT if s.confirmed_at else Tone.WARN),
                    safe(" ".join(s.verdicts), 40) or "-", safe(s.text, 200),
                ),
                f"verdict:{s.verdicts[0]}" if s.verdicts else _subject_key(s.rule, s.subject),
            )
            for s in held
        ),
        widest=30,
    )  # fmt: skip


def _subject_key(rule: str, subject: str) -> str:
    return f"node:{subject}" if RULES[rule].accuses else f"job:{subject}"


def _gates(seen: WatchSnapshot, now_at: datetime) -> list[Row]:
    if seen.state is None:
        return [row((LABEL.format("gates"), Tone.HEAD), ("no watcher counted here", Tone.DIM))]
    limits, known = seen.limits or WatchLimits(), seen.count("fleet") or 0
    counts = gate_counts(seen.state, limits, known, seen.names("freeze"), now_at)
    rows = table(
        ("GATE", "NOW", "USED"),
        (
            ((c.gate, ("shut", Tone.WARN) if c.shut else ("open", Tone.OK), safe(c.text, 300)), "")
            for c in counts
        ),
    )
    if seen.limits is None:
        rows.append(row(("its limits are not told: these are the built-in ones", Tone.UNKNOWN)))
    return rows


def _feed(records: Iterable[WatchRecord], times: Times) -> list[Row]:
    rows = [heading("WHAT HAPPENED   newest first")]
    for record in reversed(tuple(records)):
        verdict = record.text("verdict")
        rows.append(
            row(
                (f"{times.of(record.at)}  ", Tone.DIM),
                (safe(record_words(record), 300), _TONES.get(record.kind, Tone.PLAIN)),
                key=f"verdict:{verdict}" if verdict else "",
            )
        )
    return rows if len(rows) > 1 else [*rows, row(("nothing yet", Tone.DIM))]
