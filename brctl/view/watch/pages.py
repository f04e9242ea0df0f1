"""`brctl watch status|policy|replay`."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from brctl.model.exit_codes import ExitCode
from brctl.model.nodeset import fold
from brctl.model.units import describe_duration, rfc3339
from brctl.model.watch.policy import WatchPolicy
from brctl.model.watch.snapshot import WatchSnapshot
from brctl.model.watch.state import Rejudged, WatchState
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable
from brctl.view.watch.record import record_line, record_row
from brctl.watch.gate_counts import nodes_taken
from brctl.watch.rules import RULES

FRESH = timedelta(seconds=30)
"""A watcher that told nothing for so long is not there."""


def status_page(seen: WatchSnapshot, policy: WatchPolicy, now: datetime) -> Page:
    """Who leads, how many nodes talk, what is suspected, how far the breaker is."""
    status, state, told_at = seen.status, seen.state, seen.told_at
    alive = told_at is not None and now - told_at < FRESH
    body = {
        "alive": alive,
        "leader": status.get("holder"),
        "mode": status.get("mode"),
        "at": status.get("at"),
        "nodes": status.get("nodes"),
        "talking": status.get("talking"),
        "reconnecting": status.get("reconnecting") or {},
        "silent": status.get("silent") or [],
        "cpu_percent_a_node": status.get("cpu_percent_a_node"),
        "problem": seen.stopped or seen.problem or status.get("problem") or None,
        "scheduler": status.get("scheduler") or None,
        "network": state.network or None if state else None,
        "crowds": {rule: list(nodes) for rule, nodes in state.crowds.items()} if state else {},
        "untold": {about: event.text for about, event in state.untold.items()} if state else {},
        "breaker": _breaker(state, policy, status, now),
        "quiet": {n: rfc3339(at) for n, at in sorted(state.quiet.items())} if state else {},
        "suspicions": _suspicions(state),
        "records": [record_row(record) for record in seen.records],
    }
    lines = [_head(body, alive, seen, now), *_trouble(body)]
    lines += [f"suspected  {s['rule']} {s['subject']}: {s['text']}" for s in _suspicions(state)]
    lines += [record_line(record) for record in seen.records]
    text = "\n".join(printable(line, 300) for line in lines)
    return Page("WatchStatus", body, text, _code(body, alive), next=_next(alive, seen.stopped))


def _code(body: Mapping[str, object], alive: bool) -> ExitCode:
    if not alive:
        return ExitCode.UNKNOWN
    return ExitCode.WARNING if body["suspicions"] or body["problem"] else ExitCode.OK


def _next(alive: bool, stopped: str) -> tuple[str, ...]:
    if stopped:
        return ("brctl watch stop --lift",)
    return () if alive else ("brctl watch --mode observe",)


def _head(body: Mapping[str, object], alive: bool, seen: WatchSnapshot, now: datetime) -> str:
    if seen.stopped:
        return f"STOPPED  {seen.stopped}"
    if seen.problem:
        return "UNKNOWN  the watcher's folder cannot be read"
    if not alive:
        last = f"; the last said {body['at']}" if body["at"] else ""
        return f"UNKNOWN  no watcher is at work{last}"
    up = describe_duration((now - seen.state.began_at).total_seconds()) if seen.state else "?"
    breaker = body["breaker"]
    assert isinstance(breaker, dict)  # noqa: S101 - made above
    windows = " ".join(f"{w['taken']}/{w['limit']} ({w['within']})" for w in breaker["windows"])
    shut = "open" if breaker["open"] else "closed"
    return (
        f"{body['mode']}  leader {body['leader']} up {up}   {body['nodes']} nodes:"
        f" {body['talking']} talking{_reconnecting(body)}   breaker {shut} {windows}"
    )


def _reconnecting(body: Mapping[str, object]) -> str:
    known, talking = body["nodes"], body["talking"]
    if type(known) is not int or type(talking) is not int or known == talking:
        return ""
    return f"  {known - talking} reconnecting"


def _trouble(body: Mapping[str, object]) -> list[str]:
    silent = body["silent"]
    lines = [f"silent  {fold(silent)}"] if isinstance(silent, list) and silent else []
    lines += [f"network  {body['network']}"] if body["network"] else []
    lines += [f"scheduler  where jobs run: {body['scheduler']}"] if body["scheduler"] else []
    crowds = body["crowds"]
    lines += (
        [f"crowd  {r}: {fold(n)}" for r, n in crowds.items()] if isinstance(crowds, dict) else []
    )
    untold = body["untold"]
    lines += (
        [f"untold  {about}: no sink took the page yet: {text}" for about, text in untold.items()]
        if isinstance(untold, dict)
        else []
    )
    return lines + ([f"problem  {body['problem']}"] if body["problem"] else [])


def _breaker(
    state: WatchState | None, policy: WatchPolicy, status: Mapping[str, object], now: datetime
) -> dict[str, Json]:
    known = status.get("fleet", status.get("nodes"))
    fleet = known if type(known) is int else 0
    windows = [
        {
            "within": describe_duration(breaker.within_s),
            "taken": len(nodes_taken(state, breaker, now)) if state else 0,
            "limit": breaker.limit(fleet),
        }
        for breaker in policy.limits.breakers
    ]
    return {"open": state.breaker_open or None if state else None, "windows": windows}


def _suspicions(state: WatchState | None) -> list[dict[str, Json]]:
    held = state.suspicions.values() if state else ()
    return [
        {
            "rule": s.rule,
            "subject": s.subject,
            "since": rfc3339(s.since),
            "looks": s.looks,
            "confirmed": s.confirmed_at is not None,
            "text": s.text,
            "verdicts": list(s.verdicts),
        }
        for s in held
    ]


def policy_page(policy: WatchPolicy) -> Page:
    """What a policy allows, rule by rule."""
    limits = policy.limits
    rules = [
        {
            "rule": name,
            "class": rule.watch_class.value,
            "mode": (policy.rules.get(name) or policy.mode).value,
            "every_seconds": rule.every_s,
            "looks": rule.looks,
            "title": rule.title,
        }
        for name, rule in RULES.items()
    ]
    body = {
        "origin": policy.origin or None,
        "mode": policy.mode.value,
        "rules": rules,
        "classes": {fault.value: mode.value for fault, mode in policy.classes.items()},
        "freeze": list(policy.freezes),
        "limits": {
            "breaker": [
                {"within_seconds": b.within_s, "share": b.share, "least": b.least}
                for b in limits.breakers
            ],
            "attempts_a_day": limits.attempts_a_day,
            "restarts": limits.restarts,
            "restarts_within_seconds": limits.restarts_within_s,
            "restart_steps": limits.restart_steps,
            "spares_kept": limits.spares_kept,
            "quiet_seconds": limits.quiet_s,
            "start_up_seconds": limits.start_up_s,
        },
    }
    table = [("RULE", "MODE", "EVERY", "LOOKS", "WHAT")]
    table += [
        (str(r["rule"]), str(r["mode"]), f"{r['every_seconds']:g} s", str(r["looks"]),
         str(r["title"]))
        for r in rules
    ]  # fmt: skip
    lines = [f"{policy.origin or 'built-in policy'}: {policy.mode} where nothing is said"]
    lines += [f"class {fault}: {mode}" for fault, mode in policy.classes.items()]
    return Page("WatchPolicy", body, "\n".join([*lines, columns(table)]))


def replay_page(found: Sequence[Rejudged], policy: WatchPolicy) -> Page:
    """What would have been done under a policy, and where it is known whether that was right."""
    rows = tuple(
        {
            "at": rfc3339(row.at),
            "verdict": row.verdict,
            "rule": row.rule,
            "class": row.fault,
            "nodes": list(row.nodes),
            "was": row.was,
            "now": row.now,
            "held": row.held or None,
            "right": row.right,
        }
        for row in found
    )
    acts = [row for row in found if row.now == "act"]
    judged = [row for row in acts if row.right is not None]
    body = {
        "origin": policy.origin or None,
        "decisions": list(rows),
        "acts": len(acts),
        "judged": len(judged),
        "right": sum(row.right is True for row in judged),
    }
    table = [("AT", "VERDICT", "RULE", "CLASS", "WAS", "NOW", "RIGHT", "HELD BY")]
    words = {True: "right", False: "wrong", None: "-"}
    table += [
        (rfc3339(r.at)[:19], r.verdict, r.rule, r.fault, r.was, r.now, words[r.right],
         printable(r.held, 60) or "-")
        for r in found
    ]  # fmt: skip
    known = f"; {len(judged)} judged, {body['right']} right" if acts else ""
    said = f"{len(acts)} of {len(found)} decisions act{known}"
    text = f"{columns(table)}\n{said}" if found else "no decision in this record"
    return Page("WatchReplay", body, text, rows=rows)
