"""How far each gate is used up now, whatever the next verdict will be; pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from brctl.model.nodeset import fold
from brctl.model.units import describe_duration, utc_text
from brctl.model.watch.policy import Breaker, WatchLimits
from brctl.model.watch.state import WatchAct, WatchState
from brctl.watch.gates import DAY

NAMED = 3
"""Nodes or jobs that a gate names; of more it says how many."""


@dataclass(frozen=True, slots=True)
class GateCount:
    """A gate, how far it is used, and whether it lets nothing, or not all, pass."""

    gate: str
    text: str
    shut: bool = False


def gate_counts(
    state: WatchState, limits: WatchLimits, known: int, freezes: Sequence[str], now: datetime
) -> tuple[GateCount, ...]:
    """The gates that count something, in the order in which they are asked.

    Args:
        state: What the watcher did and may not do yet.
        limits: Those of its policy.
        known: Nodes of the inventory.
        freezes: Calendars that the policy names.
        now: The moment.
    """
    return (
        _start_up(state, limits, now),
        _breaker(state, limits, known, now),
        GateCount("spares", f"{limits.spares_kept} stay in the pool"),
        _attempts(state, limits, now),
        _restarts(state, limits, now),
        _quiet(state, now),
        GateCount("freeze", ", ".join(freezes) or "no calendar is named"),
    )


def nodes_taken(state: WatchState, breaker: Breaker, now: datetime) -> frozenset[str]:
    """Nodes that count for a breaker; those from before a person closed it do not."""
    closed_at = state.breaker_since
    acts = _since(state.acts, now - timedelta(seconds=breaker.within_s))
    return frozenset(
        node for act in acts if closed_at is None or act.at > closed_at for node in act.nodes
    )


def _start_up(state: WatchState, limits: WatchLimits, now: datetime) -> GateCount:
    up_s = max((now - state.began_at).total_seconds(), 0.0)
    first = describe_duration(limits.start_up_s)
    text = f"up for {describe_duration(up_s)}, only observing for the first {first}"
    return GateCount("start-up", text, up_s < limits.start_up_s)


def _breaker(state: WatchState, limits: WatchLimits, known: int, now: datetime) -> GateCount:
    if state.breaker_open:
        return GateCount("breaker", f"open since {state.breaker_open}; a person closes it", True)
    used = [(len(nodes_taken(state, each, now)), each) for each in limits.breakers]
    windows = [
        f"{taken} of {each.limit(known)} nodes in {describe_duration(each.within_s)}"
        for taken, each in used
    ]
    shut = any(taken >= each.limit(known) for taken, each in used)
    return GateCount("breaker", ", ".join(windows), shut)


def _attempts(state: WatchState, limits: WatchLimits, now: datetime) -> GateCount:
    tried = Counter(
        (node, act.fault.value) for act in _since(state.acts, now - DAY) for node in act.nodes
    )
    named = [f"{node} ({fault}) {count}" for (node, fault), count in tried.most_common(NAMED)]
    most = max(tried.values(), default=0)
    allowed = f"of {limits.attempts_a_day} a node and fault in 24 h"
    text = f"{', '.join(named) or 'none'} {allowed}{_more(len(tried))}"
    return GateCount("attempts", text, most >= limits.attempts_a_day)


def _restarts(state: WatchState, limits: WatchLimits, now: datetime) -> GateCount:
    """How many of them came to nothing only the next verdict shows: it brings the job's step."""
    within = timedelta(seconds=limits.restarts_within_s)
    done = Counter(act.job for act in _since(state.acts, now - within) if act.job)
    named = [f"{job} {count}" for job, count in done.most_common(NAMED)]
    span = describe_duration(limits.restarts_within_s)
    allowed = f"of {limits.restarts} in {span} without {limits.restart_steps} new steps"
    return GateCount("restarts", f"{', '.join(named) or 'none'} {allowed}{_more(len(done))}")


def _quiet(state: WatchState, now: datetime) -> GateCount:
    until = {node: at for node, at in state.quiet.items() if at > now}
    if not until:
        return GateCount("quiet", "no person had a hand in any node")
    last = utc_text(max(until.values()))
    return GateCount("quiet", f"{fold(until)} left alone, the last until {last}", True)


def _more(count: int) -> str:
    return f"; {count} in all" if count > NAMED else ""


def _since(acts: Sequence[WatchAct], since: datetime) -> Iterator[WatchAct]:
    return (act for act in acts if act.at > since)
