"""Limits that refuse a plan: pure decisions over facts the engine collected.

Every line of every file that applies is asked, and all must agree: that is the merge by strictness,
and a refusal can name the very line that refused. A guard that refuses a set of nodes refuses every
larger one. What could not be found out never counts as good.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import floor

from brctl.model.nodeset import fold
from brctl.model.plan import GuardResult
from brctl.model.playbook import Arguments, GuardSpec, InputType, Json, Playbook
from brctl.model.units import describe_duration, parse_duration_s
from brctl.playbook.expressions import ExpressionError

DEFAULT_WINDOW = "6h"
ANYONE = "anyone"
"""As an owner: cordons of other people may be lifted too, as `--take-over` does."""

BUILT_IN = GuardSpec(
    "blast_radius", {"max_nodes": 5, "max_percent": 1, "window": DEFAULT_WINDOW}, "built in"
)
"""Applies when no guards.yaml has a line: 5 nodes is the paper's P99 of a 1,200 machine fleet."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A node somebody took out of service, and when."""

    node: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class PastRun:
    """An earlier run that changed something, for `cooldown`."""

    run: str
    nodes: tuple[str, ...]
    job: str
    at: datetime
    playbook: str = ""


@dataclass(frozen=True, slots=True)
class GuardFacts:
    """What the guards may know; None means it could not be found out.

    Attributes:
        nodes: Nodes the plan takes out of service; empty for one that takes none.
        named: Nodes the plan touches in any way.
        fleet: Nodes that count as the whole.
        healthy: Nodes of the fleet known to be in service and well.
        silent: Nodes of the fleet that nobody could measure.
        standbys: Standbys that are free to take.
        cordon_owners: Who cordoned each cordoned node.
        busy: Node to the job it carries.
        held: Wanted lock keys that another run holds, with the holder.
    """

    now_at: datetime
    run: str
    playbook: str = ""
    nodes: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    job: str = ""
    fleet: tuple[str, ...] = ()
    taken: tuple[Taken, ...] = ()
    healthy: frozenset[str] = frozenset()
    silent: frozenset[str] | None = None
    standbys: tuple[str, ...] = ()
    warmed_at: Mapping[str, datetime] = field(default_factory=dict)
    job_nodes: tuple[str, ...] = ()
    cordon_owners: Mapping[str, str] = field(default_factory=dict)
    busy: Mapping[str, str] = field(default_factory=dict)
    held: Mapping[str, str] = field(default_factory=dict)
    verdict: str = ""
    verdict_at: datetime | None = None
    still_true: bool | None = None
    past_runs: tuple[PastRun, ...] = ()


@dataclass(frozen=True, slots=True)
class _Said:
    ok: bool
    sentence: str
    way_out: str = ""


@dataclass(frozen=True, slots=True)
class GuardKind:
    """One row of the table of guards."""

    parameters: frozenset[str]
    decide: Callable[[Arguments, GuardFacts], _Said]
    durations: frozenset[str] = frozenset()


def check_guards(specs: Iterable[GuardSpec], facts: GuardFacts) -> tuple[GuardResult, ...]:
    """What every guard says about one set of facts, in the order of the lines."""
    results = []
    for spec in specs:
        said = GUARDS[spec.kind].decide(spec.parameters, facts)
        results.append(GuardResult(spec.kind, said.ok, said.sentence, spec.origin, said.way_out))
    return tuple(results)


def guards_for(playbook: Playbook, site: Sequence[GuardSpec]) -> tuple[GuardSpec, ...]:
    """The lines that apply to a playbook: its own, and the site's.

    A site line that names a playbook stands in for the general line of its kind in the same file,
    so that `group-evict` can be given its own blast radius without loosening the others.
    """
    chosen: list[GuardSpec] = []
    for spec in site:
        named = spec.parameters.get("playbook")
        if named not in (None, playbook.name):
            continue
        special = any(
            other.kind == spec.kind
            and other.parameters.get("playbook") == playbook.name
            and _file(other) == _file(spec)
            for other in site
        )
        if named or not special:
            chosen.append(spec)
    if not any(spec.kind == BUILT_IN.kind for spec in chosen):
        chosen.append(BUILT_IN)
    return (*playbook.guards, *chosen)


def _file(spec: GuardSpec) -> str:
    return spec.origin.rpartition(":")[0]


def lock_keys(playbook: Playbook, inputs: Mapping[str, Json]) -> tuple[str, ...]:
    """The leases a run needs: `job:NAME` and `node:NAME` for the inputs its lock guard lists."""
    keys: list[str] = []
    for guard in playbook.guards:
        names = guard.parameters.get("keys")
        if guard.kind == "lock" and isinstance(names, Sequence):
            for name in names:
                keys += _keys_of(playbook, str(name), inputs)
    return tuple(dict.fromkeys(keys))


def _keys_of(playbook: Playbook, name: str, inputs: Mapping[str, Json]) -> list[str]:
    spec, value = playbook.inputs.get(name), inputs.get(name)
    if spec is not None and spec.type is InputType.JOB and value:
        return [f"job:{value}"]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [f"node:{node}" for node in value]
    return []


def _number(parameters: Arguments, key: str, default: float) -> float:
    value = parameters.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ExpressionError(f"{key!r} must be a number, not {value!r}")
    return value


def _seconds(parameters: Arguments, key: str, default: str) -> float:
    return parse_duration_s(str(parameters.get(key, default)))


def _names(parameters: Arguments, key: str) -> tuple[str, ...]:
    value = parameters.get(key, ())
    return (value,) if isinstance(value, str) else tuple(str(v) for v in value)  # type: ignore[union-attr]  # a list after `validate`


def blast_limit(parameters: Arguments, fleet_count: int) -> int:
    """How many nodes may be taken: the smaller of number and percentage, but never below one.

    Rounded down, so 1 % of 450 nodes is 4. One node may always be taken: otherwise a fleet under a
    hundred could never be repaired, which protects nobody.
    """
    most = _number(parameters, "max_nodes", 5)
    percent = _number(parameters, "max_percent", 100)
    return max(1, floor(min(most, fleet_count * percent / 100)))


def _blast_radius(parameters: Arguments, facts: GuardFacts) -> _Said:
    window_s = _seconds(parameters, "window", DEFAULT_WINDOW)
    since = facts.now_at - timedelta(seconds=window_s)
    recent = [t for t in facts.taken if t.at >= since]
    before = {t.node for t in recent} - set(facts.nodes)
    limit, after = blast_limit(parameters, len(facts.fleet)), len(before) + len(facts.nodes)
    sentence = (
        f"{len(before)} nodes taken in {describe_duration(window_s)} + {len(facts.nodes)} now"
        f" = {after} {'>' if after > limit else '<='} {limit}"
    )
    if after <= limit or not facts.nodes:
        return _Said(True, sentence)
    people = "; ".join(sorted({f"{t.node} by {t.by}" for t in recent if t.node in before}))
    free = min((t.at for t in recent if t.node in before), default=None)
    wait = f", wait until {free + timedelta(seconds=window_s):%H:%M} UTC" if free else ""
    return _Said(
        False,
        sentence + (f" (taken: {people})" if people else ""),
        f"fewer nodes{wait}, or raise the limit in guards.yaml",
    )


def _standby(parameters: Arguments, facts: GuardFacts) -> _Said:
    wanted = int(_number(parameters, "at_least", 1))
    within_s = _seconds(parameters, "warmed_within", "0s")
    ready = sum(1 for name in facts.standbys if not within_s or _is_warm(name, within_s, facts))
    warm = f" and warmed within {describe_duration(within_s)}" if within_s else ""
    sentence = f"{ready} standbys ready{warm}, {wanted} needed"
    way_out = "free or add a standby; `brctl standby list` shows them"
    return _Said(ready >= wanted, sentence, way_out)


def _is_warm(name: str, within_s: float, facts: GuardFacts) -> bool:
    at = facts.warmed_at.get(name)
    return at is not None and (facts.now_at - at).total_seconds() <= within_s


def _lock(parameters: Arguments, facts: GuardFacts) -> _Said:
    if not facts.held:
        return _Said(True, "nobody else holds " + ", ".join(_names(parameters, "keys")))
    held = ", ".join(f"{key} by {holder}" for key, holder in sorted(facts.held.items()))
    return _Said(
        False, f"held by another run: {held}", "wait for that run, or `brctl play abort` it"
    )


def _verdict(parameters: Arguments, facts: GuardFacts) -> _Said:
    if not facts.verdict or facts.verdict_at is None:
        return _Said(True, "no verdict behind this run; a person named the nodes")
    limit_s = _seconds(parameters, "max_age", "30m")
    age_s = (facts.now_at - facts.verdict_at).total_seconds()
    age = f"{facts.verdict} is {describe_duration(max(age_s, 0.0))} old"
    if age_s > limit_s:
        limit = describe_duration(limit_s)
        return _Said(False, f"{age}, more than {limit}", "diagnose again: `brctl dx`")
    if not parameters.get("still_true"):
        return _Said(True, age)
    if facts.still_true is False:
        return _Said(False, f"{age} and no longer true: its nodes answer and are clean",
                     "diagnose again: `brctl dx`")  # fmt: skip
    seen = "seen again" if facts.still_true else "could not be looked at again, so not refuted"
    return _Said(True, f"{age}, {seen}")


def _min_healthy(parameters: Arguments, facts: GuardFacts) -> _Said:
    scope = str(parameters.get("scope", "fleet"))
    members = facts.job_nodes if scope == "job" else facts.fleet
    floor_percent = _number(parameters, "percent", 95)
    left = len((set(members) & facts.healthy) - set(facts.nodes))
    percent = 100 * left / len(members) if members else 0.0
    sentence = f"{left} of {len(members)} {scope} nodes stay healthy, {percent:.1f} %"
    ok = not facts.nodes or percent >= floor_percent
    return _Said(ok, f"{sentence}; at least {floor_percent:g} %", "repair or return nodes first")


def _cooldown(parameters: Arguments, facts: GuardFacts) -> _Said:
    window_s = _seconds(parameters, "window", "24h")
    most = int(_number(parameters, "at_most", 1))
    since = facts.now_at - timedelta(seconds=window_s)
    recent = [r for r in facts.past_runs if r.at >= since and r.run != facts.run]
    if parameters.get("per", "node") == "job":
        same = [r for r in recent if r.job == facts.job and r.playbook == facts.playbook]
        counts = {facts.job: len(same)} if facts.job else {}
    else:
        counts = {node: sum(1 for r in recent if node in r.nodes) for node in facts.named}
    over = {name: count for name, count in counts.items() if count >= most}
    window = describe_duration(window_s)
    if not over:
        return _Said(True, f"at most {most} runs in {window} touched each")
    named = ", ".join(f"{name} {count} times" for name, count in sorted(over.items()))
    return _Said(False, f"touched in {window}: {named}; at most {most}",
                 "something keeps coming back: look with `brctl play history`")  # fmt: skip


def _max_unknown(parameters: Arguments, facts: GuardFacts) -> _Said:
    limit = _number(parameters, "percent", 1)
    if facts.silent is None:
        return _Said(False, "no sweep says which nodes answer", "look first: `brctl sweep`")
    percent = 100 * len(facts.silent) / max(len(facts.fleet), 1)
    sentence = f"{len(facts.silent)} of {len(facts.fleet)} nodes silent, {percent:.1f} %"
    return _Said(percent <= limit, f"{sentence}; at most {limit:g} %", "look again: `brctl sweep`")


def _owner(parameters: Arguments, facts: GuardFacts) -> _Said:
    allowed = _names(parameters, "cordoned_by") or ("brctl",)
    nodes = _names(parameters, "nodes") or facts.named
    foreign = {
        node: facts.cordon_owners[node]
        for node in nodes
        if node in facts.cordon_owners
        and not any(_is_owner(facts.cordon_owners[node], name) for name in allowed)
    }
    if not foreign:
        return _Said(True, "no node is cordoned by somebody else")
    named = ", ".join(f"{node} by {owner}" for node, owner in sorted(foreign.items()))
    return _Said(False, f"cordoned outside brctl: {named}", "ask them, or --take-over -m TEXT")


def _is_owner(owner: str, allowed: str) -> bool:
    return allowed in (ANYONE, owner) or owner.startswith(f"{allowed}:")


def _idle(parameters: Arguments, facts: GuardFacts) -> _Said:
    nodes = _names(parameters, "nodes") or facts.named
    busy = {node: facts.busy[node] for node in nodes if node in facts.busy}
    if not busy:
        return _Said(True, f"{fold(nodes)} carries no job")
    named = ", ".join(f"{node} runs {job}" for node, job in sorted(busy.items()))
    return _Said(False, f"in use: {named}", "stop the job first, or take another node")


def _kind(
    decide: Callable[[Arguments, GuardFacts], _Said], *parameters: str, durations: str = ""
) -> GuardKind:
    return GuardKind(frozenset(parameters) | {"playbook"}, decide, frozenset(durations.split()))


GUARDS: Mapping[str, GuardKind] = {
    "blast_radius": _kind(_blast_radius, "max_nodes", "max_percent", "of", "window",
                          durations="window"),
    "min_healthy": _kind(_min_healthy, "scope", "percent"),
    "standby": _kind(_standby, "at_least", "warmed_within", durations="warmed_within"),
    "verdict": _kind(_verdict, "max_age", "still_true", durations="max_age"),
    "cooldown": _kind(_cooldown, "per", "at_most", "window", durations="window"),
    "idle": _kind(_idle, "nodes"),
    "owner": _kind(_owner, "nodes", "cordoned_by", "action"),
    "lock": _kind(_lock, "keys"),
    "max_unknown": _kind(_max_unknown, "percent"),
}  # fmt: skip

ANNOUNCED_GUARDS = frozenset({"maintenance_window", "freeze"})
"""Guards of the schema that this version cannot keep; a file that names one is refused."""
