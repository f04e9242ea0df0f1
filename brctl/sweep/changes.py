"""What is new since the last sweep, what recovered, what is due for a reminder.

Three rules keep cron quiet and honest:
1. Only looks that found the check in order, STICKY_LOOKS in a row, recover a problem; a node that
   fell silent recovers nothing.
2. A problem that comes back before it recovered is the same alert. One that comes back within
   FLAP_WINDOW of its recovery is a flap; the FLAPS_TOLD-th is told as flapping, and then nothing
   more until it kept quiet for FLAP_WINDOW.
3. One check failing anew on many nodes at once is one event with a shared cause.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from brctl.model.sweeps.changes import Changes, CheckProblem, Key, Mass, Tracked
from brctl.model.sweeps.sweep import Health

STICKY_LOOKS = 2
FLAP_WINDOW = timedelta(hours=24)
FLAPS_TOLD = 3
MASS_NODES = 8
MASS_RATIO = 0.1
_SHARED_RATIO = 0.8


def compare(
    known: Mapping[Key, Tracked],
    problems: Iterable[CheckProblem],
    cleared: Iterable[Key],
    now_at: datetime,
    reminder: timedelta,
) -> Changes:
    """Changes between what was known and one sweep; see the rules above."""
    tracked = dict(known)
    new: list[CheckProblem] = []
    worse: list[CheckProblem] = []
    still: list[Tracked] = []
    flapping: list[Tracked] = []
    for problem in problems:
        before = known.get(problem.key)
        after = _track(before, problem, now_at)
        if before is None or (before.recovered_at and after.flaps < FLAPS_TOLD):
            new.append(problem)
        elif before.recovered_at and after.flaps == FLAPS_TOLD:
            flapping.append(after)
        elif _is_worse(problem, before.problem) and before.recovered_at is None:
            worse.append(problem)
            after = replace(after, told_at=now_at)
        elif now_at - before.told_at >= reminder:
            after = replace(after, told_at=now_at)
            still.append(after)
        tracked[problem.key] = after
    recovered = _recover(tracked, cleared, now_at)
    return Changes(tuple(new), tuple(worse), recovered, tuple(still), tuple(flapping), (), tracked)


def _track(before: Tracked | None, problem: CheckProblem, now_at: datetime) -> Tracked:
    if before is None:
        return Tracked(problem, now_at, now_at)
    if before.recovered_at is None:
        return replace(before, problem=problem, clean_looks=0)
    back_soon = now_at - before.recovered_at < FLAP_WINDOW
    flaps = before.flaps + 1 if back_soon else 0
    return Tracked(problem, now_at, now_at, flaps=flaps)


def _recover(
    tracked: dict[Key, Tracked], cleared: Iterable[Key], now_at: datetime
) -> tuple[Tracked, ...]:
    recovered: list[Tracked] = []
    for key in cleared:
        before = tracked.get(key)
        if before is None:
            continue
        if before.recovered_at is not None:
            if before.flaps >= FLAPS_TOLD and now_at - before.recovered_at >= FLAP_WINDOW:
                tracked[key] = replace(before, flaps=0)
                recovered.append(tracked[key])
            continue
        after = replace(before, clean_looks=before.clean_looks + 1)
        if after.clean_looks >= STICKY_LOOKS:
            after = replace(after, recovered_at=now_at)
            if before.flaps < FLAPS_TOLD:
                recovered.append(after)
        tracked[key] = after
    return tuple(recovered)


def _is_worse(problem: CheckProblem, before: CheckProblem) -> bool:
    return problem.health is Health.CRITICAL and before.health is not Health.CRITICAL


def recognise_mass(changes: Changes, fleet: Mapping[str, Mapping[str, str]]) -> Changes:
    """Take one check's many new failures out of `new` and tell them once.

    Args:
        changes: Of one sweep.
        fleet: Labels (rack, leaf, ...) of every node that was asked.
    """
    by_check: dict[tuple[str, Health], list[CheckProblem]] = {}
    for problem in changes.new:
        by_check.setdefault((problem.check, problem.health), []).append(problem)
    floor = max(MASS_NODES, MASS_RATIO * len(fleet))
    mass = tuple(
        Mass(
            check, health, tuple(p.node for p in group), group[0].detail,
            shared_label([p.node for p in group], fleet),
        )
        for (check, health), group in by_check.items()
        if len(group) >= floor
    )  # fmt: skip
    reported = {(each.check, node) for each in mass for node in each.nodes}
    rest = tuple(p for p in changes.new if (p.check, p.node) not in reported)
    return replace(changes, new=rest, mass=mass)


def shared_label(nodes: Iterable[str], fleet: Mapping[str, Mapping[str, str]]) -> str:
    """The label most of these nodes share and few others have, `rack:r12`; "" when none does."""
    chosen = set(nodes)
    best = ("", 0.0)
    labels = {(k, v) for node in chosen for k, v in fleet.get(node, {}).items()}
    for key, value in sorted(labels):
        holders = {node for node, having in fleet.items() if having.get(key) == value}
        inside = len(holders & chosen)
        score = min(inside / len(chosen), inside / len(holders))
        if score > best[1]:
            best = (f"{key}:{value}", score)
    return best[0] if best[1] >= _SHARED_RATIO else ""
