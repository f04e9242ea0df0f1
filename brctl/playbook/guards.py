"""Limits that refuse a plan: pure decisions over facts the engine collected.

Every line of every file that applies is asked, and all must agree: that is the merge by strictness,
and a refusal can name the very line that refused. A guard that refuses a set of nodes refuses every
larger one. What could not be found out never counts as good.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from math import floor

from brctl.model.fault_catalogue import WRONG_RESULTS
from brctl.model.nodeset import fold
from brctl.model.runs.plan import GuardResult
from brctl.model.runs.playbook import Arguments, GuardSpec, InputType, Json, Playbook
from brctl.model.units import describe_duration, utc_text
from brctl.playbook.guard_facts import (
    Fact,
    GuardDecision,
    GuardFacts,
    Taken,
    names,
    number,
    seconds,
)
from brctl.playbook.time_guards import FREEZE_ACTIONS, freeze, maintenance_window

DEFAULT_WINDOW = "6h"
MEND = "mend this line"

ANYONE = "anyone"
"""As an owner: cordons of other people may be lifted too, as `--take-over` does."""

BUILT_IN = GuardSpec(
    "blast_radius", {"max_nodes": 5, "max_percent": 1, "window": DEFAULT_WINDOW}, "built in"
)
"""Applies when no guards.yaml has a line: 5 nodes is the paper's P99 of a 1,200 machine fleet."""


class ValueType(StrEnum):
    """What the value of a parameter is."""

    NUMBER = "number"
    DURATION = "duration"
    TEXT = "text"
    NAMES = "names"
    TRUTH = "truth"


Parameter = ValueType | tuple[str, ...]
"""A kind of value, or the closed list of its words."""


@dataclass(frozen=True, slots=True)
class GuardKind:
    """One row of the table of guards; `needs` is what must be looked up before it can answer."""

    decide: Callable[[Arguments, GuardFacts], GuardDecision]
    needs: frozenset[Fact]
    parameters: Mapping[str, Parameter]
    required: frozenset[str] = frozenset()


def check_guards(specs: Iterable[GuardSpec], facts: GuardFacts) -> tuple[GuardResult, ...]:
    """What every guard says about one set of facts, in the order of the lines."""
    results = []
    for spec in specs:
        try:
            decision = _answer(spec, facts)
        except ValueError as exc:
            decision = GuardDecision(False, f"its values make no sense: {exc}", MEND)
        results.append(
            GuardResult(
                spec.kind,
                decision.ok,
                decision.sentence,
                spec.origin,
                decision.way_out,
                decision.people,
                decision.skips,
            )
        )
    return tuple(results)


def _answer(spec: GuardSpec, facts: GuardFacts) -> GuardDecision:
    kind = GUARDS[spec.kind]
    unknown = [fact for fact in Fact if fact in kind.needs and fact in facts.unknown]
    missing = [f"{fact}: {facts.unknown[fact]}" for fact in unknown]
    if missing:
        return GuardDecision(
            False, f"cannot be told: {'; '.join(missing)}", "try again when it can"
        )
    return kind.decide(spec.parameters, facts)


def needed_by(specs: Iterable[GuardSpec]) -> frozenset[Fact]:
    """What must be looked up before these guards can answer."""
    return frozenset(fact for spec in specs for fact in GUARDS[spec.kind].needs)


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


def blast_limit(parameters: Arguments, fleet_count: int) -> int:
    """How many nodes may be taken: the smaller of number and percentage, but never below one.

    Rounded down, so 1 % of 450 nodes is 4. One node may always be taken: otherwise a fleet under a
    hundred could never be repaired, which protects nobody.
    """
    most = number(parameters, "max_nodes", 5)
    percent = number(parameters, "max_percent", 100)
    return max(1, floor(min(most, fleet_count * percent / 100)))


def _blast_radius(parameters: Arguments, facts: GuardFacts) -> GuardDecision:
    window_s = seconds(parameters, "window", DEFAULT_WINDOW)
    since = facts.now_at - timedelta(seconds=window_s)
    by_runs = [Taken(node, r.run, r.ended_at) for r in facts.past_runs for node in r.taken]
    recent = [t for t in (*facts.taken, *by_runs) if t.at >= since]
    before = {t.node for t in recent} - set(facts.nodes)
    limit, after = blast_limit(parameters, len(facts.fleet)), len(before) + len(facts.nodes)
    sentence = (
        f"{len(before)} nodes taken in {describe_duration(window_s)} + {len(facts.nodes)} now"
        f" = {after} {'>' if after > limit else '<='} {limit}"
    )
    sentence += "".join(f"; {text}" for text in facts.uncounted)
    if after <= limit or not facts.nodes:
        return GuardDecision(True, sentence)
    people = "; ".join(sorted({f"{t.node} by {t.by}" for t in recent if t.node in before}))
    free = min((t.at for t in recent if t.node in before), default=None)
    wait = f", wait until {utc_text(free + timedelta(seconds=window_s))}" if free else ""
    return GuardDecision(
        False,
        sentence + (f" (taken: {people})" if people else ""),
        f"fewer nodes{wait}, or raise the limit in guards.yaml",
    )


def _standby(parameters: Arguments, facts: GuardFacts) -> GuardDecision:
    wanted = int(number(parameters, "at_least", 1))
    within_s = seconds(parameters, "warmed_within", "0s")
    # A standby in the rack that loses power is none.
    there = [name for name in facts.standbys if name not in facts.nodes]
    ready = sum(1 for name in there if not within_s or _is_warm(name, within_s, facts))
    warm = f" and warmed within {describe_duration(within_s)}" if within_s else ""
    sentence = f"{ready} standbys ready{warm}, {wanted} needed"
    # Who asks for warm ones means them; an idle node is warm for nobody.
    idle = tuple(name for name in facts.spares if name not in facts.nodes)
    spares = idle[: max(wanted - ready, 0)] if not within_s else ()
    sentence += f"; idle {fold(spares)} for the shortfall" if spares else ""
    way_out = "free or add a standby; `brctl standby list` shows them"
    return GuardDecision(ready + len(spares) >= wanted, sentence, way_out)


def _is_warm(name: str, within_s: float, facts: GuardFacts) -> bool:
    at = facts.warmed_at.get(name)
    return at is not None and (facts.now_at - at).total_seconds() <= within_s


def _lock(parameters: Arguments, facts: GuardFacts) -> GuardDecision:
    if not facts.held:
        return GuardDecision(True, "nobody else holds " + ", ".join(names(parameters, "keys")))
    held = ", ".join(f"{key} by {holder}" for key, holder in sorted(facts.held.items()))
    return GuardDecision(
        False, f"held by another run: {held}", "wait for that run, or `brctl play abort` it"
    )


def _verdict(parameters: Arguments, facts: GuardFacts) -> GuardDecision:
    if not facts.verdict or facts.verdict_at is None:
        return GuardDecision(True, "no verdict behind this run; a person named the nodes")
    limit_s = seconds(parameters, "max_age", "30m")
    age_s = (facts.now_at - facts.verdict_at).total_seconds()
    age = f"{facts.verdict} is {describe_duration(max(age_s, 0.0))} old"
    if age_s > limit_s:
        limit = describe_duration(limit_s)
        return GuardDecision(False, f"{age}, more than {limit}", "diagnose again: `brctl dx`")
    if parameters.get("still_stalled") and facts.goes_on:
        return GuardDecision(False, f"{age}, and job {facts.job} takes steps again",
                     "diagnose again: `brctl dx`")  # fmt: skip
    if not parameters.get("still_true"):
        return GuardDecision(True, age)
    if facts.still_true is False:
        return GuardDecision(False, f"{age} and no longer true: its nodes answer and are clean",
                     "diagnose again: `brctl dx`")  # fmt: skip
    state = "still true" if facts.still_true else "could not be looked at again, so not refuted"
    return GuardDecision(True, f"{age}, {state}")


def _min_healthy(parameters: Arguments, facts: GuardFacts) -> GuardDecision:
    """Of the batches of `for_each` the one that leaves too little decides, or the last.

    A node that stays out for good is cordoned and so no longer healthy: it counts in every batch.
    """
    batches = facts.at_once or (facts.nodes,)
    decisions = [_left_without(parameters, replace(facts, nodes=batch)) for batch in batches]
    return next((each for each in decisions if not each.ok), decisions[-1])


def _left_without(parameters: Arguments, facts: GuardFacts) -> GuardDecision:
    scope = str(parameters.get("scope", "fleet"))
    floor_percent = number(parameters, "percent", 95)
    if scope in ("rack", "leaf"):
        return _min_healthy_around(scope, floor_percent, facts)
    members = facts.job_nodes if scope == "job" else facts.fleet
    return _enough_left(f"{scope} nodes", members, floor_percent, facts)


def _min_healthy_around(scope: str, floor_percent: float, facts: GuardFacts) -> GuardDecision:
    """Every rack or leaf that would lose a node keeps enough; an unlabelled node counts nowhere."""
    place_of = facts.racks if scope == "rack" else facts.leaves
    unlabelled = [node for node in facts.nodes if node not in place_of]
    if unlabelled:
        return GuardDecision(
            False,
            f"nobody knows the {scope} of {fold(unlabelled)}",
            f"give these nodes a `{scope}` in the inventory",
        )
    decisions = [
        _enough_left(
            f"nodes of {scope} {place}",
            [node for node in facts.fleet if place_of.get(node) == place],
            floor_percent,
            facts,
        )
        for place in sorted({place_of[node] for node in facts.nodes})
    ]
    worst = next((each for each in decisions if not each.ok), None)
    return worst or GuardDecision(
        True, "; ".join(each.sentence for each in decisions) or f"no {scope} loses any"
    )


def _enough_left(
    what: str, members: Sequence[str], floor_percent: float, facts: GuardFacts
) -> GuardDecision:
    left = len((set(members) & facts.healthy) - set(facts.nodes))
    percent = 100 * left / len(members) if members else 0.0
    out = f" with {fold(facts.nodes)} out" if facts.at_once and facts.nodes else ""
    sentence = f"{left} of {len(members)} {what} stay healthy{out}, {percent:.1f} %"
    unknown = len(set(members) & (facts.silent or frozenset()))
    sentence += f" ({unknown} not known)" if unknown else ""
    ok = not facts.nodes or percent >= floor_percent
    way_out = "look again: `brctl sweep`" if unknown else "repair or return nodes first"
    return GuardDecision(ok, f"{sentence}; at least {floor_percent:g} %", way_out)


def _cooldown(parameters: Arguments, facts: GuardFacts) -> GuardDecision:
    window_s = seconds(parameters, "window", "24h")
    most = int(number(parameters, "at_most", 1))
    since = facts.now_at - timedelta(seconds=window_s)
    recent = [r for r in facts.past_runs if r.ended_at >= since and r.run != facts.run]
    if parameters.get("per", "node") == "job":
        same = [r for r in recent if r.job == facts.job and r.playbook == facts.playbook]
        counts = {facts.job: len(same)} if facts.job else {}
    else:
        counts = {node: sum(1 for r in recent if node in r.taken) for node in facts.named}
    over = {name: count for name, count in counts.items() if count >= most}
    window = describe_duration(window_s)
    if not over:
        return GuardDecision(True, f"at most {most} runs in {window} touched each")
    named = ", ".join(f"{name} {count} times" for name, count in sorted(over.items()))
    return GuardDecision(False, f"touched in {window}: {named}; at most {most}",
                 "something keeps coming back: look with `brctl play history`")  # fmt: skip


def _max_unknown(parameters: Arguments, facts: GuardFacts) -> GuardDecision:
    limit = number(parameters, "percent", 1)
    if facts.silent is None:
        return GuardDecision(False, "no sweep says which nodes answer", "look first: `brctl sweep`")
    percent = 100 * len(facts.silent) / max(len(facts.fleet), 1)
    sentence = f"{len(facts.silent)} of {len(facts.fleet)} nodes silent, {percent:.1f} %"
    return GuardDecision(
        percent <= limit, f"{sentence}; at most {limit:g} %", "look again: `brctl sweep`"
    )


def _owner(parameters: Arguments, facts: GuardFacts) -> GuardDecision:
    allowed = names(parameters, "cordoned_by") or ("brctl",)
    nodes = names(parameters, "nodes") or facts.named
    idle = _in_service(parameters, facts, nodes)
    others = {
        node: facts.cordon_owners[node]
        for node in nodes
        if node in facts.cordon_owners
        and not any(_is_owner(facts.cordon_owners[node], name) for name in allowed)
    }
    if not others:
        passed = f"; passed over, in service already: {fold(idle)}" if idle else ""
        return GuardDecision(True, f"no node is cordoned by somebody else{passed}", skips=idle)
    named = ", ".join(f"{node} by {owner}" for node, owner in sorted(others.items()))
    if parameters.get("action", "refuse") == "skip_node" and facts.per_node:
        named += f"; in service already: {fold(idle)}" if idle else ""
        sentence = f"passed over, cordoned outside brctl: {named}"
        return GuardDecision(True, sentence, skips=(*others, *idle))
    return GuardDecision(
        False, f"cordoned outside brctl: {named}", "ask them, or --take-over -m TEXT"
    )


def _in_service(parameters: Arguments, facts: GuardFacts, nodes: Sequence[str]) -> tuple[str, ...]:
    """The nodes that a playbook for cordoned ones has nothing to do with."""
    skips = parameters.get("uncordoned", "allow") == "skip_node" and facts.per_node
    return tuple(node for node in nodes if skips and node not in facts.cordon_owners)


def _is_owner(owner: str, allowed: str) -> bool:
    return allowed in (ANYONE, owner) or owner.startswith(f"{allowed}:")


def _corruption(parameters: Arguments, facts: GuardFacts) -> GuardDecision:
    """A part that is wrong now and then passes a burn-in: only a repair brings its node back."""
    repaired = names(parameters, "repaired")
    wrong = [
        node
        for node in names(parameters, "nodes") or facts.named
        if node not in repaired and _computed_wrongly(node, facts)
    ]
    if not wrong:
        return GuardDecision(True, "no node is out for wrong results that nobody repaired")
    sentence = f"out for wrong results, and nobody says that it was repaired: {fold(wrong)}"
    if parameters.get("action", "refuse") == "skip_node" and facts.per_node:
        return GuardDecision(True, f"passed over, {sentence}", skips=tuple(wrong))
    way_out = f"replace the part, then name the node: `--set repaired={fold(wrong)}`"
    return GuardDecision(False, sentence, way_out)


def _computed_wrongly(node: str, facts: GuardFacts) -> bool:
    """A cordon keeps its first reason, so what was found on the node later is asked as well."""
    reason = facts.cordon_reasons.get(node, "")
    return WRONG_RESULTS in reason or node in facts.computed_wrongly


def _idle(parameters: Arguments, facts: GuardFacts) -> GuardDecision:
    nodes = names(parameters, "nodes") or facts.named
    busy = {node: facts.busy[node] for node in nodes if node in facts.busy}
    if not busy:
        return GuardDecision(True, f"{fold(nodes)} carries no job")
    named = ", ".join(f"{node} runs {job}" for node, job in sorted(busy.items()))
    return GuardDecision(False, f"in use: {named}", "stop the job first, or take another node")


def _carries(parameters: Arguments, facts: GuardFacts) -> GuardDecision:
    nodes = names(parameters, "nodes") or facts.named
    unused = [node for node in nodes if node not in facts.job_nodes]
    if not unused:
        return GuardDecision(True, f"{fold(nodes)} carries job {facts.job}")
    sentence = f"{fold(unused)} does not carry job {facts.job}"
    return GuardDecision(False, sentence, f"swapped already? `brctl job show {facts.job}`")


def _kind(
    decide: Callable[[Arguments, GuardFacts], GuardDecision],
    needs: Set[Fact],
    required: str = "",
    **parameters: Parameter,
) -> GuardKind:
    known = {**parameters, "playbook": ValueType.TEXT}
    return GuardKind(decide, frozenset(needs), known, frozenset(required.split()))


GUARDS: Mapping[str, GuardKind] = {
    "blast_radius": _kind(_blast_radius, {Fact.TAKEN, Fact.PAST_RUNS}, max_nodes=ValueType.NUMBER,
                          max_percent=ValueType.NUMBER, of=("gpu",), window=ValueType.DURATION),
    "min_healthy": _kind(_min_healthy, {Fact.HEALTH, Fact.JOBS},
                         scope=("fleet", "job", "rack", "leaf"), percent=ValueType.NUMBER),
    "standby": _kind(_standby, {Fact.STANDBYS}, at_least=ValueType.NUMBER,
                     warmed_within=ValueType.DURATION),
    "verdict": _kind(_verdict, {Fact.VERDICT}, max_age=ValueType.DURATION,
                     still_true=ValueType.TRUTH, still_stalled=ValueType.TRUTH),
    "cooldown": _kind(_cooldown, {Fact.PAST_RUNS}, per=("node", "job"), at_most=ValueType.NUMBER,
                      window=ValueType.DURATION),
    "maintenance_window": _kind(maintenance_window, {Fact.CALENDARS}, "calendar",
                                calendar=ValueType.TEXT, must_end_before_close=ValueType.DURATION,
                                if_configured=ValueType.TRUTH),
    "freeze": _kind(freeze, {Fact.CALENDARS}, "calendar", calendar=ValueType.TEXT,
                    action=FREEZE_ACTIONS),
    "idle": _kind(_idle, {Fact.JOBS}, nodes=ValueType.NAMES),
    "carries": _kind(_carries, {Fact.JOBS}, nodes=ValueType.NAMES),
    "owner": _kind(_owner, {Fact.CORDONS}, nodes=ValueType.NAMES, cordoned_by=ValueType.NAMES,
                   action=("refuse", "skip_node"), uncordoned=("allow", "skip_node")),
    "corruption": _kind(_corruption, {Fact.CORDONS, Fact.BURNINS}, nodes=ValueType.NAMES,
                        repaired=ValueType.NAMES, action=("refuse", "skip_node")),
    "lock": _kind(_lock, {Fact.LOCKS}, keys=ValueType.NAMES),
    "max_unknown": _kind(_max_unknown, {Fact.SILENCE}, percent=ValueType.NUMBER),
}  # fmt: skip

NEVER_OVERRIDDEN = frozenset({"lock"})
"""Two runs on one node corrupt each other's record, whoever allowed it."""
