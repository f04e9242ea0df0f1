"""A watcher as metrics: who looks, what is suspected, what was decided, how far the breaker is."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

from brctl.model.units import parse_rfc3339
from brctl.model.watch.policy import WatchMode
from brctl.model.watch.state import WatchState
from brctl.view.fleet.prometheus import series_of
from brctl.view.watch.pages import FRESH
from brctl.watch.rules import RULES

ACTED_WITHIN = timedelta(days=1)


def watch_totals(
    status: Mapping[str, object], state: WatchState | None, stopped: str, context: str,
    now: datetime,
) -> Mapping[str, float]:  # fmt: skip
    """Values by series; none of a context in which nobody ever watched."""
    if not status:
        return {}
    found = [*_of_status(status, stopped, now), *(_of_state(state, now) if state else ())]
    return {series_of(name, {"context": context, **own}): value for name, own, value in found}


_Value = tuple[str, Mapping[str, str], float]


def _of_status(status: Mapping[str, object], stopped: str, now: datetime) -> list[_Value]:
    told_at = parse_rfc3339(str(status["at"]))
    known, talking = status.get("nodes"), status.get("talking")
    rows: list[_Value] = [
        ("brctl_watch_up", {}, float(now - told_at < FRESH and not stopped)),
        ("brctl_watch_last_told_timestamp_seconds", {}, told_at.timestamp()),
        ("brctl_watch_trouble", {}, float(bool(status.get("problem")))),
    ]
    if type(known) is int and type(talking) is int:
        rows.append(("brctl_watch_nodes", {"state": "talking"}, talking))
        rows.append(("brctl_watch_nodes", {"state": "silent"}, known - talking))
    return rows


def _of_state(state: WatchState, now: datetime) -> list[_Value]:
    suspected = Counter(held.rule for held in state.suspicions.values())
    decided = Counter(state.decided.values())
    acted = {n for act in state.acts if now - act.at < ACTED_WITHIN for n in act.nodes}
    return [
        *(("brctl_watch_suspicions", {"rule": rule}, suspected[rule]) for rule in RULES),
        *(("brctl_watch_decisions", {"mode": m.value}, decided[m.value]) for m in WatchMode),
        ("brctl_watch_breaker_open", {}, float(bool(state.breaker_open))),
        ("brctl_watch_nodes_acted_on", {}, len(acted)),
        ("brctl_watch_network_trouble", {}, float(bool(state.network))),
    ]
