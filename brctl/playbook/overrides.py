"""One person lets one run pass one guard, by name and with a reason, if the site allows it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from brctl.model.runs.plan import GuardResult
from brctl.playbook.approvals import GroupsOf
from brctl.playbook.guards import NEVER_OVERRIDDEN

LASTS_S = 3600.0
"""Whoever looked at the numbers decided for now; a run resumed later asks again."""


@dataclass(frozen=True, slots=True)
class Override:
    """Who overrides which guard, why and when."""

    guard: str
    by: str
    why: str
    at: datetime


def why_not_allowed(
    override: Override, allowed: Collection[str], groups_of: GroupsOf, now: datetime
) -> str | None:
    """Why an override does not count, or None when it does."""
    if override.guard in NEVER_OVERRIDDEN:
        return f"{override.guard} cannot be overridden: two runs would act on the same nodes"
    if not override.why.strip():
        return "an override needs a reason (-m TEXT)"
    if (now - override.at).total_seconds() > LASTS_S:
        return f"the override of {override.guard} by {override.by} is more than an hour old"
    if not allowed:
        return "no group may override guards here (override.allow_groups of every guards.yaml)"
    if not set(allowed) & set(groups_of(override.by)):
        groups = " or ".join(sorted(allowed))
        return f"{override.by} is not in group {groups}, which may override guards"
    return None


def overridden(
    results: Sequence[GuardResult],
    override: Override | None,
    allowed: Collection[str],
    groups_of: GroupsOf,
    now: datetime,
) -> tuple[GuardResult, ...]:
    """The results with the refusals of one guard turned into recorded exceptions."""
    if override is None:
        return tuple(_with_hint(result, allowed) for result in results)
    problem = why_not_allowed(override, allowed, groups_of, now)
    return tuple(
        result
        if result.ok or result.kind != override.guard
        else _turned(result, override, problem, sorted(set(allowed) & set(groups_of(override.by))))
        for result in results
    )


def _with_hint(result: GuardResult, allowed: Collection[str]) -> GuardResult:
    if result.ok or not allowed or result.kind in NEVER_OVERRIDDEN:
        return result
    hint = f"or (group {', '.join(sorted(allowed))}) --override {result.kind} -m TEXT"
    return replace(result, way_out=f"{result.way_out}, {hint}")


def _turned(
    result: GuardResult, override: Override, problem: str | None, groups: Sequence[str]
) -> GuardResult:
    if problem is not None:
        return replace(result, way_out=f"{problem}; {result.way_out}")
    who = f"{override.by} (group {', '.join(groups)}): {override.why}"
    return replace(result, ok=True, overridden_by=who)
