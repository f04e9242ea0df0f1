"""What stands between a verdict and a change: one row a gate, asked in this order, all of them.

A gate that is open says why as well: a person reads the row before trusting the watcher. What is
not known (calendars, standbys, the fleet's size) keeps a gate shut.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from brctl.model.fault import FaultClass
from brctl.model.nodeset import fold
from brctl.model.runs.calendar import Calendar
from brctl.model.units import describe_duration, utc_text
from brctl.model.verdict import Confidence
from brctl.model.watch.policy import WatchMode, WatchPolicy, strictest
from brctl.model.watch.state import GateAnswer, Suspicion, WatchAct, WatchDecision, WatchState
from brctl.watch.crowds import crowd_text
from brctl.watch.suspicions import reopened

DAY = timedelta(days=1)
UNNAMED = frozenset({FaultClass.UNKNOWN, FaultClass.NO_FAULT})


@dataclass(frozen=True, slots=True)
class WatchedVerdict:
    """What the gates ask of a verdict.

    Attributes:
        takes_nodes: What is done takes nodes out of work.
        playbook: What would be run; "" when a person must act.
        finds_nodes: Which nodes those are shows only in the run.
    """

    id: str
    fault: FaultClass
    confidence: Confidence
    nodes: tuple[str, ...]
    job: str
    playbook: str
    takes_nodes: bool
    step: int | None = None
    finds_nodes: bool = False


@dataclass(frozen=True, slots=True)
class GateFacts:
    """The moment a decision is made in.

    Attributes:
        known: Nodes of the inventory, reachable or not.
        spares: Standbys that are ready; None when nobody knows.
        calendars: Those that the policy names, by name.
    """

    now: datetime
    known: int
    spares: int | None
    calendars: Mapping[str, Calendar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asked:
    """All that a gate may look at."""

    verdict: WatchedVerdict
    rule: str
    policy: WatchPolicy
    state: WatchState
    facts: GateFacts

    def acts_within(self, within: timedelta) -> Sequence[WatchAct]:
        return [act for act in self.state.acts if self.facts.now - act.at < within]


def _sure(asked: Asked) -> tuple[bool, str]:
    verdict = asked.verdict
    if verdict.fault in UNNAMED:
        return False, f"{verdict.fault} names no cause"
    return verdict.confidence is Confidence.HIGH, f"{verdict.confidence} confidence"


def _playbook(asked: Asked) -> tuple[bool, str]:
    return bool(asked.verdict.playbook), asked.verdict.playbook or "a person must act"


def _nodes(asked: Asked) -> tuple[bool, str]:
    """What takes nodes that nobody can count beforehand is for a person."""
    verdict = asked.verdict
    if not verdict.takes_nodes:
        return True, "takes no node"
    if verdict.finds_nodes or not verdict.nodes:
        return False, f"which nodes {verdict.playbook} takes shows only in its run"
    return True, fold(verdict.nodes)


def _crowd(asked: Asked) -> tuple[bool, str]:
    """What befalls many at once is no reason to take nodes, whichever of them a verdict names."""
    if asked.rule == "node-silent" and asked.state.network:
        return False, asked.state.network
    for rule, nodes in asked.state.crowds.items():
        if rule == asked.rule or set(nodes) & set(asked.verdict.nodes):
            return False, crowd_text(rule, nodes, asked.facts.known)
    return True, "no crowd"


def _breaker(asked: Asked) -> tuple[bool, str]:
    if asked.state.breaker_open:
        return False, f"open since {asked.state.breaker_open}; a person closes it"
    if not asked.verdict.takes_nodes:
        return True, "takes no node"
    used = [_used(asked, number) for number in range(len(asked.policy.limits.breakers))]
    over = next((text for fits, text in used if not fits), "")
    return not over, over or ", ".join(text for _, text in used)


def _used(asked: Asked, number: int) -> tuple[bool, str]:
    breaker, since = asked.policy.limits.breakers[number], asked.state.breaker_since
    acts = asked.acts_within(timedelta(seconds=breaker.within_s))
    taken = {n for act in acts if since is None or act.at > since for n in act.nodes}
    with_these = len(taken | set(asked.verdict.nodes))
    limit = breaker.limit(asked.facts.known)
    span = describe_duration(breaker.within_s)
    return with_these <= limit, f"{with_these} of {limit} nodes in {span}"


def _spares(asked: Asked) -> tuple[bool, str]:
    if not asked.verdict.takes_nodes:
        return True, "takes no node"
    if asked.facts.spares is None:
        return False, "nobody knows how many standbys are ready"
    left = asked.facts.spares - len(asked.verdict.nodes)
    kept = asked.policy.limits.spares_kept
    return left >= kept, f"{asked.facts.spares} ready, {max(left, 0)} after it, {kept} kept"


def _attempts(asked: Asked) -> tuple[bool, str]:
    limit = asked.policy.limits.attempts_a_day
    tried = {
        node: sum(
            node in act.nodes and act.fault is asked.verdict.fault for act in asked.acts_within(DAY)
        )
        for node in asked.verdict.nodes
    }
    node = max(tried, key=tried.__getitem__, default="")
    most = tried.get(node, 0)
    return most < limit, f"{most} of {limit} in 24 h" + (f" on {node}" if node else "")


def _restarts(asked: Asked) -> tuple[bool, str]:
    """Restarts of a job that came to nothing: it took no steps in between."""
    limits, verdict = asked.policy.limits, asked.verdict
    within = timedelta(seconds=limits.restarts_within_s)
    idle = [
        act
        for act in asked.acts_within(within)
        if verdict.job
        and act.job == verdict.job
        and not _went_on(act, verdict, limits.restart_steps)
    ]
    span = describe_duration(limits.restarts_within_s)
    return len(idle) < limits.restarts, f"{len(idle)} of {limits.restarts} in {span}"


def _went_on(act: WatchAct, verdict: WatchedVerdict, steps: int) -> bool:
    return act.step is not None and verdict.step is not None and verdict.step - act.step >= steps


def _quiet(asked: Asked) -> tuple[bool, str]:
    until = {
        node: asked.state.quiet[node]
        for node in asked.verdict.nodes
        if asked.state.quiet.get(node, asked.facts.now) > asked.facts.now
    }
    if not until:
        return True, "no person had a hand in it"
    return False, f"a person had a hand in {fold(until)}; until {utc_text(max(until.values()))}"


def _freeze(asked: Asked) -> tuple[bool, str]:
    for name in asked.policy.freezes:
        calendar = asked.facts.calendars.get(name) or Calendar(name, problem="nobody read it")
        if calendar.problem:
            return False, f"calendar {name!r} cannot be read: {calendar.problem}"
        span = calendar.span_at(asked.facts.now)
        if span is not None:
            return False, f"{name!r} until {utc_text(span.end_at)}"
    return True, ", ".join(asked.policy.freezes) or "no calendar is named"


def _start_up(asked: Asked) -> tuple[bool, str]:
    limit_s = asked.policy.limits.start_up_s
    up_s = (asked.facts.now - asked.state.began_at).total_seconds()
    return up_s >= limit_s, f"up for {describe_duration(max(up_s, 0.0))} of the first " + (
        describe_duration(limit_s)
    )


def _once(asked: Asked) -> tuple[bool, str]:
    done = next((act for act in asked.state.acts if act.verdict == asked.verdict.id), None)
    return done is None, "not yet" if done is None else f"started {utc_text(done.at)}"


GATES: Mapping[str, Callable[[Asked], tuple[bool, str]]] = {
    "sure": _sure,
    "playbook": _playbook,
    "once": _once,
    "start-up": _start_up,
    "nodes": _nodes,
    "crowd": _crowd,
    "breaker": _breaker,
    "spares": _spares,
    "attempts": _attempts,
    "restarts": _restarts,
    "quiet": _quiet,
    "freeze": _freeze,
}

_ALSO_FOR_A_PROPOSAL = ("sure", "once")
"""A page costs a person's night and no machine: no other gate keeps it back."""


def decide(
    verdict: WatchedVerdict,
    rule: str,
    policy: WatchPolicy,
    cap: WatchMode,
    state: WatchState,
    facts: GateFacts,
) -> WatchDecision:
    """What becomes of a verdict that a rule's suspicion led to.

    Args:
        verdict: What was found.
        rule: Name of the rule that led to it.
        policy: What the site allows.
        cap: The most that this watcher was started for.
        state: What it did and may not do yet.
        facts: The moment.
    """
    asked = Asked(verdict, rule, policy, state, facts)
    gates = tuple(GateAnswer(name, *gate(asked)) for name, gate in GATES.items())
    wanted = policy.mode_of(rule, verdict.fault)
    allowed = strictest(wanted, cap)
    shut = {gate.gate: gate for gate in gates if not gate.open}
    mode = allowed
    if mode is WatchMode.ACT and shut:
        mode = WatchMode.PROPOSE
    if mode is WatchMode.PROPOSE and any(name in shut for name in _ALSO_FOR_A_PROPOSAL):
        mode = WatchMode.OBSERVE
    first = next(iter(shut.values()), None)
    held = f"{first.gate}: {first.why}" if first is not None else ""
    if policy.problem or (not held and allowed is not WatchMode.ACT):
        # Whatever else holds it: a policy that cannot be read is what a person has to mend.
        held = f"mode {allowed}" + (f" ({policy.problem})" if policy.problem else "")
    opens = shut.get("breaker") if allowed is WatchMode.ACT and not state.breaker_open else None
    return WatchDecision(
        verdict.id, mode.value, wanted.value, held, gates,
        opens.why if opens is not None and set(shut) == {"breaker"} else "",
    )  # fmt: skip


def closed_breaker(state: WatchState, now: datetime) -> WatchState:
    """The state after a person closed the breaker: what was held is judged anew, never replayed."""
    anew = {key: reopened(s, state.acts) for key, s in state.suspicions.items()}
    return replace(state, breaker_open="", breaker_since=now, suspicions=anew)


def shifted(state: WatchState, jump: timedelta) -> WatchState:
    """The state after the clock jumped: all that was before keeps its distance to now."""
    return replace(
        state,
        began_at=state.began_at + jump,
        breaker_since=state.breaker_since and state.breaker_since + jump,
        acts=tuple(replace(act, at=act.at + jump) for act in state.acts),
        quiet={node: until + jump for node, until in state.quiet.items()},
        suspicions={key: _moved(s, jump) for key, s in state.suspicions.items()},
        kernel_since={node: at + jump for node, at in state.kernel_since.items()},
    )


def _moved(held: Suspicion, jump: timedelta) -> Suspicion:
    return replace(
        held,
        since=held.since + jump,
        confirmed_at=held.confirmed_at and held.confirmed_at + jump,
        named_at=held.named_at and held.named_at + jump,
    )
