"""A recorded time judged again under another policy: what would have been done, and how right."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

from brctl.model.fault import FaultClass
from brctl.model.runs.calendar import Calendar
from brctl.model.units import rfc3339
from brctl.model.verdict import Confidence
from brctl.model.watch.policy import WatchMode, WatchPolicy
from brctl.model.watch.state import Rejudged, WatchAct, WatchRecord, WatchState
from brctl.watch.gates import GateFacts, WatchedVerdict, closed_breaker, decide

_FAULTS = {fault.value: fault for fault in FaultClass}
_SURE = {word.value: word for word in Confidence}


def rejudge(
    records: Iterable[WatchRecord],
    policy: WatchPolicy,
    cap: WatchMode,
    held_true: Mapping[str, bool],
    calendars: Mapping[str, Calendar],
) -> Iterator[Rejudged]:
    """Every decision of a record, made anew with the facts that stand beside it.

    What the watcher of then did is forgotten: acts, breaker and attempts are those of the policy.

    Args:
        records: In order of time.
        policy: The one that is tried.
        cap: The most that is allowed.
        held_true: Whether a verdict was right, where that is known.
        calendars: Those that the policy names.
    """
    state: WatchState | None = None
    found: dict[str, WatchedVerdict] = {}
    for record in records:
        state = _after(record, state, policy)
        if record.kind == "verdict":
            verdict = _verdict(record)
            found |= {verdict.id: verdict} if verdict else {}
        asked = found.get(record.text("verdict")) if record.kind == "decision" else None
        if asked is None:
            continue
        facts = GateFacts(record.at, record.count("known") or 0, record.count("spares"), calendars)
        rule = record.text("rule")
        made = decide(asked, rule, policy, cap, state, facts)
        if made.opens_breaker:
            state = replace(state, breaker_open=f"{rfc3339(record.at)}: {made.opens_breaker}")
        if made.mode == WatchMode.ACT:
            state = replace(state, acts=(*state.acts, _act(asked, record)))
        yield Rejudged(
            record.at, asked.id, rule, asked.fault.value, asked.nodes, record.text("mode"),
            made.mode, made.held, held_true.get(asked.id),
        )  # fmt: skip


def _after(record: WatchRecord, state: WatchState | None, policy: WatchPolicy) -> WatchState:
    """What a line that is no decision changes."""
    state = state or WatchState(record.at)
    if record.kind == "start":
        return replace(state, began_at=record.at)
    if record.kind == "quiet":
        until = record.at + timedelta(seconds=policy.limits.quiet_s)
        return replace(state, quiet={**state.quiet, **dict.fromkeys(record.names("nodes"), until)})
    if record.kind == "breaker-closed":
        return closed_breaker(state, record.at)
    if record.kind in ("crowd", "crowd-over"):
        nodes = {record.text("rule"): record.names("nodes")} if record.kind == "crowd" else {}
        left = {rule: held for rule, held in state.crowds.items() if rule != record.text("rule")}
        return replace(state, crowds={**left, **nodes})
    return state


def _verdict(record: WatchRecord) -> WatchedVerdict | None:
    fault, sure = _FAULTS.get(record.text("fault")), _SURE.get(record.text("confidence"))
    if fault is None or sure is None or not record.text("verdict"):
        return None
    return WatchedVerdict(
        record.text("verdict"), fault, sure, record.names("nodes"), record.text("job"),
        record.text("playbook"), record.fields.get("takes_nodes") is True, record.count("step"),
        record.fields.get("finds_nodes") is True,
    )  # fmt: skip


def _act(verdict: WatchedVerdict, record: WatchRecord) -> WatchAct:
    nodes = verdict.nodes if verdict.takes_nodes else ()
    return WatchAct(
        record.at, verdict.id, verdict.fault, nodes, verdict.job, verdict.step, record.seq
    )
