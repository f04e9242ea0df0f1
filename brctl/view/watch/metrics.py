"""A watcher as metrics: who looks, what is suspected, what was decided, how far the breaker is."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

from brctl.model.units import parse_rfc3339
from brctl.model.watch.policy import WatchMode
from brctl.model.watch.state import WatchState
from brctl.view.fleet.prometheus import Sample, series_of
from brctl.view.watch.pages import FRESH
from brctl.watch.rules import RULES

ACTED_WITHIN = timedelta(days=1)


def watch_samples(
    status: Mapping[str, object], state: WatchState | None, stopped: str, context: str,
    now: datetime,
) -> list[Sample]:  # fmt: skip
    """What a watcher told last, as seen now; nothing where nobody ever watched."""
    if not status:
        return []
    found = [*_of_status(status, stopped, now), *(_of_state(state, now) if state else ())]
    return [(name, {"context": context, **own}, value) for name, own, value in found]


def watch_totals(
    status: Mapping[str, object], state: WatchState | None, stopped: str, context: str,
    now: datetime,
) -> Mapping[str, float]:  # fmt: skip
    """The same by series."""
    samples = watch_samples(status, state, stopped, context, now)
    return {series_of(name, labels): value for name, labels, value in samples}


def _of_status(status: Mapping[str, object], stopped: str, now: datetime) -> list[Sample]:
    told_at = parse_rfc3339(str(status["at"]))
    known, talking = status.get("nodes"), status.get("talking")
    cpu_percent = status.get("cpu_percent_a_node")
    rows: list[Sample] = [
        ("brctl_watch_up", {}, float(now - told_at < FRESH and not stopped)),
        ("brctl_watch_last_told_timestamp_seconds", {}, told_at.timestamp()),
        ("brctl_watch_trouble", {}, float(bool(status.get("problem")))),
        ("brctl_watch_scheduler_trouble", {}, float(bool(status.get("scheduler")))),
    ]
    if isinstance(cpu_percent, int | float):
        rows.append(("brctl_watch_node_cpu_ratio", {}, cpu_percent / 100))
    if type(known) is int and type(talking) is int:
        rows.append(("brctl_watch_nodes", {"state": "talking"}, talking))
        rows.append(("brctl_watch_nodes", {"state": "silent"}, known - talking))
    return rows


def _of_state(state: WatchState, now: datetime) -> list[Sample]:
    suspected = Counter(held.rule for held in state.suspicions.values())
    decided = Counter(state.decided.values())
    acted = {n for act in state.acts if now - act.at < ACTED_WITHIN for n in act.nodes}
    return [
        *(("brctl_watch_suspicions", {"rule": rule}, suspected[rule]) for rule in RULES),
        *(("brctl_watch_decisions", {"mode": m.value}, decided[m.value]) for m in WatchMode),
        ("brctl_watch_breaker_open", {}, float(bool(state.breaker_open))),
        ("brctl_watch_nodes_acted_on", {}, len(acted)),
        ("brctl_watch_network_trouble", {}, float(bool(state.network))),
        ("brctl_watch_crowds", {}, len(state.crowds)),
        ("brctl_watch_quiet_nodes", {}, sum(until > now for until in state.quiet.values())),
    ]
