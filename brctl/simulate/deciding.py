"""The response that brctl itself gives: its rules choose, and the truth says whether it helped.

What a playbook does to a fault, and how long that takes, only a simulation may say: it is here and
in no rule. A wrong choice brings the job up, the fault stops it again, and the tree climbs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache

from brctl.model.exit_codes import ExitCode
from brctl.model.fault import Action
from brctl.model.runs.playbook import Need
from brctl.model.runs.result import PastRun, RunState
from brctl.model.simulation import Book
from brctl.model.verdict import Verdict
from brctl.model.watch.policy import WatchMode
from brctl.playbook.guard_facts import GuardFacts
from brctl.playbook.taken_nodes import TakenNodes, taken_nodes
from brctl.playbook.tree import IncidentHistory, Move
from brctl.simulate import answers
from brctl.simulate.chance import exponential, unit
from brctl.simulate.decisions import (
    ProposedAction,
    Rules,
    convicted_by_replay,
    move_of,
    people_needed,
    refusals,
    verdict_of,
)
from brctl.simulate.fleet import US
from brctl.simulate.response import by_people, see, start_again
from brctl.simulate.symptoms import Cause, Kind
from brctl.simulate.trace import DrawnFault
from brctl.simulate.watching import SimulatedWatch
from brctl.simulate.world import World
from brctl.watch.gates import GateFacts, WatchedVerdict

LOOK_S = 10.0
"""One `dx`: a sweep of all nodes of the job; measured in the lab, assumed to be so at scale."""
STOP_CHECKS_S = 600.0
"""Checks that need an idle node; the longest of the published ones (Table 6), assumed for all."""
REPLAY_S = 4_218.0
"""Table 6: NaN, from localisation to a restart, without the start."""
STOPS_AGAIN_S = 120.0
"""A fault that is still there stops the job so soon after a start; assumed."""
CHANGE_ON_RECORD = 0.5
"""Chance that a change of code could be rolled back when a job stops; assumed."""
FINDS, FINDS_CORRUPTION = 0.95, 0.7
"""Chance that stop-time checks see a bad node: assumed, and NVIDIA's EUD for silent corruption."""
REPRODUCES = 0.95
"""Chance that a group with a bad node fails again when the job is replayed; assumed."""
FAILS_BY_CHANCE = 0.001
"""The same for a group without one; assumed."""
PROPOSAL_S = 300.0
"""From a page to the command, where the fleet says nothing of approvals; assumed."""
TRIES_LIMIT = 12
ALERT_SPACING_S = 30.0

_EVICTS = frozenset({"swap-and-resume", "group-evict", "cordon"})


@dataclass(frozen=True, slots=True)
class _Try:
    """One round of an incident."""

    fault: DrawnFault
    number: int
    slot: int
    history: IncidentHistory


class Deciding:
    """Looks, lets the rules choose, acts, and looks again where that did not help."""

    def __init__(self, rules: Rules, watch: SimulatedWatch | None = None) -> None:
        self._rules, self._watch = rules, watch
        self._breaker_closes_us: int | None = None
        self._past: list[PastRun] = []

    def recover(self, world: World, fault: DrawnFault) -> None:
        if fault.kind is Kind.MANUAL:
            start_again(world, fault, 0)
            return
        seed = world.trace.seed
        slot = fault.nodes[0] if fault.nodes else int(
            unit(seed, "place", fault.number) * world.fleet.nodes
        )  # fmt: skip
        changed = unit(seed, "change", fault.number) < CHANGE_ON_RECORD
        history = IncidentHistory(changed=changed)
        for number in range(TRIES_LIMIT):
            if world.over:
                return
            history, done = self._try(world, _Try(fault, number, slot, history))
            if done:
                return
        self._person(world, fault, TRIES_LIMIT)

    def _try(self, world: World, at: _Try) -> tuple[IncidentHistory, bool]:
        """One look and what follows it; whether the job is back for good."""
        self._see(world, at)
        verdict = verdict_of(
            answers.answers_to(at.fault, world.fleet.signals, world.trace.seed, at.number)
        )
        move = _in_order(world.policy.first, at, verdict, move_of(verdict, at.history))
        if move.do is Action.WATCH and at.history.alerts < 2 and not move.advances:
            world.spend(Book.DETECT, ALERT_SPACING_S)
            return replace(at.history, alerts=at.history.alerts + 1), False
        if not move.playbook:
            self._person(world, at.fault, at.number)
            return at.history, True
        plan = ProposedAction(
            self._rules.playbooks[move.playbook], verdict, _slots(world, at, verdict.nodes)
        )
        if refusals(self._rules, plan, self._facts(world, plan)):
            world.count("refused")
            self._person(world, at.fault, at.number)
            return at.history, True
        if not self._allowed(world, at, plan):
            self._person(world, at.fault, at.number)
            return at.history, True
        self._approved(world, at, people_needed(self._rules, plan))
        world.count("actions")
        helped = self._act(world, at, move, plan)
        self._remember(world, plan)
        if helped:
            return at.history, True
        if not at.number:
            world.count("came_back")
        world.spend(Book.REDO, STOPS_AGAIN_S)
        tried, repeated = (*at.history.tried, move.playbook), bool(plan.suspects)
        return replace(at.history, tried=tried, repeated=at.history.repeated or repeated), False

    def _see(self, world: World, at: _Try) -> None:
        """Until the signal is there and the watch looks, and a stall counts as one; one look."""
        watch, seed = world.fleet.watch, world.trace.seed
        name = (at.fault.number, at.number)
        chance = unit(seed, "watch", *name)
        wait_s = watch.every_s * chance
        if self._watch is not None:
            wait_s = self._watch.seen_after_s(at.fault.kind, chance)
        if world.fleet.signals.delay_s:
            wait_s += exponential(world.fleet.signals.delay_s, seed, "signal", *name)
        if at.fault.kind is Kind.HANG:
            wait_s += watch.stall_after_s
        see(world, at.fault.kind, wait_s)
        world.spend(Book.LOCATE, LOOK_S)

    def _allowed(self, world: World, at: _Try, plan: ProposedAction) -> bool:
        """Whether it comes to the action: at once, or once a person typed what was proposed."""
        if self._watch is None:
            return True
        now = answers.NOW + timedelta(microseconds=world.now_us)
        if self._breaker_closes_us is not None and world.now_us >= self._breaker_closes_us:
            self._watch.close_breaker(now)
            self._breaker_closes_us = None
        verdict, nodes, taken = plan.verdict, plan.suspects, taken_nodes(plan.playbook)
        watched = WatchedVerdict(
            f"V-{at.fault.number}-{at.number}", verdict.fault, verdict.confidence, nodes,
            verdict.job, plan.playbook.name, taken is not TakenNodes.NONE,
            world.trained_steps, taken is TakenNodes.FOUND,
        )  # fmt: skip
        facts = GateFacts(now, world.fleet.nodes, world.pool.look(world.now_us))
        found = self._watch.decide(at.fault.kind, verdict, watched, facts)
        if found.opens_breaker:
            world.count("refused")
            name = ("breaker", at.fault.number, at.number)
            wait_s = exponential(world.fleet.people.mend_s, world.trace.seed, *name)
            self._breaker_closes_us = world.now_us + round(wait_s * US)
        if found.mode == WatchMode.PROPOSE.value:
            self._page(world, at)
        return found.mode != WatchMode.OBSERVE.value

    def _page(self, world: World, at: _Try) -> None:
        """A person is called, reads the command and types it."""
        world.count("pages")
        name = ("proposal", at.fault.number, at.number)
        mean_s = world.fleet.people.approval_s or PROPOSAL_S
        world.spend(Book.WAIT_HUMAN, exponential(mean_s, world.trace.seed, *name))

    def _approved(self, world: World, at: _Try, need: Need) -> None:
        if need is not Need.NONE:
            world.count("approvals")
            mean_s = world.fleet.people.approval_s * (2 if need is Need.TWO else 1)
            name = ("approval", at.fault.number, at.number)
            world.spend(Book.WAIT_HUMAN, exponential(mean_s, world.trace.seed, *name))

    def _person(self, world: World, fault: DrawnFault, attempt: int) -> None:
        """A person looks, finds it and mends it."""
        by_people(world, fault)
        world.evict(fault.culprits, fault.culprits)
        start_again(world, fault, len(fault.culprits), attempt)

    def _act(self, world: World, at: _Try, move: Move, plan: ProposedAction) -> bool:
        """What the playbook does; whether the fault is gone."""
        taken = tuple(int(name[1:]) for name in plan.suspects) if move.playbook in _EVICTS else ()
        if move.playbook == "stop-time-checks":
            world.spend(Book.LOCATE, STOP_CHECKS_S)
            taken = self._found(world, at)
        elif move.playbook == "replay":
            world.spend(Book.LOCATE, REPLAY_S)
            taken = self._replayed(world, at)
        elif move.playbook == "locate-corruption":
            world.spend(Book.LOCATE, STOP_CHECKS_S)
            taken = self._found(world, at)
            if not taken:
                world.spend(Book.LOCATE, REPLAY_S)
                taken = self._replayed(world, at)
        world.evict(taken, at.fault.culprits)
        start_again(world, at.fault, len(taken), at.number)
        return _is_gone(at, move.playbook, taken)

    def _found(self, world: World, at: _Try) -> tuple[int, ...]:
        """Bad nodes that checks on idle nodes see."""
        chance = FINDS_CORRUPTION if at.fault.kind is Kind.NAN else FINDS
        seen = unit(world.trace.seed, "checks", at.fault.number, at.number) < chance
        return at.fault.culprits if seen else ()

    def _replayed(self, world: World, at: _Try) -> tuple[int, ...]:
        """Whom brctl's own two rounds of groups convict; the truth only fails groups."""
        seed, culprits = world.trace.seed, set(at.fault.culprits)

        def fails(stage: int, number: int, group: Sequence[int]) -> bool:
            name = (at.fault.number, at.number, stage, number)
            if culprits.intersection(group):
                return unit(seed, "reproduced", *name) < REPRODUCES
            return unit(seed, "by chance", *name) < FAILS_BY_CHANCE

        return convicted_by_replay(world.fleet.nodes, world.fleet.group_nodes, fails)

    def _facts(self, world: World, plan: ProposedAction) -> GuardFacts:
        """What guards may know: the fleet, the pool, what was done before."""
        moment = answers.NOW + timedelta(microseconds=world.now_us)
        names = _names(world.fleet.nodes)
        takes = plan.suspects if plan.playbook.name in _EVICTS else ()
        ready = world.pool.look(world.now_us)
        spare = tuple(f"s{i}" for i in range(ready))
        return GuardFacts(
            now_at=moment, run="R-now", playbook=plan.playbook.name, nodes=takes,
            named=plan.suspects, job=plan.verdict.job, fleet=names, healthy=_healthy(len(names)),
            silent=frozenset(), standbys=spare, warmed_at=dict.fromkeys(spare, moment),
            job_nodes=names, busy=dict.fromkeys(plan.suspects, plan.verdict.job),
            verdict=plan.verdict.id, verdict_at=moment, still_true=True,
            past_runs=tuple(self._past), can_ask=True,
        )  # fmt: skip

    def _remember(self, world: World, plan: ProposedAction) -> None:
        """A finished run, for guards that look back; a week is longer than any window."""
        ended = answers.NOW + timedelta(microseconds=world.now_us)
        takes = plan.suspects if plan.playbook.name in _EVICTS else ()
        self._past = [run for run in self._past if run.ended_at > ended - timedelta(days=7)]
        self._past.append(
            PastRun(run=f"R-{world.now_us}", playbook=plan.playbook.name, taken=takes,
                    job=plan.verdict.job, result=RunState.OK, exit_code=int(ExitCode.OK),
                    ended_at=ended)
        )  # fmt: skip


def _in_order(first: str, at: _Try, verdict: Verdict, move: Move) -> Move:
    """The tree's move, or at the first try another playbook where there is something to do."""
    if at.number or not first or not move.playbook or (first in _EVICTS and not verdict.nodes):
        return move
    return replace(move, playbook=first, do=Action.RESTART)


def _is_gone(at: _Try, playbook: str, taken: tuple[int, ...]) -> bool:
    match at.fault.cause:
        case Cause.MACHINE:
            return set(at.fault.culprits) <= set(taken)
        case Cause.PASSING:
            return True
        case Cause.CODE:
            return playbook == "code-rollback" or (
                playbook == "locate-corruption" and at.history.changed
            )
        case _:
            return False


def _slots(world: World, at: _Try, suspects: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the large fleet for those of the small job: its neighbours stand for the others."""
    own = answers.culprits_in(at.fault)
    bad = at.fault.nodes or (at.slot,)
    slots = list(bad) if set(own) <= set(suspects) else []
    others = [name for name in suspects if name not in own or not slots]
    slots += [(at.slot + len(bad) + answers.NODES.index(name)) % world.fleet.nodes
              for name in others]  # fmt: skip
    return tuple(f"n{slot}" for slot in dict.fromkeys(slots))


@lru_cache(maxsize=4)
def _names(count: int) -> tuple[str, ...]:
    return tuple(f"n{slot}" for slot in range(count))


@lru_cache(maxsize=4)
def _healthy(count: int) -> frozenset[str]:
    return frozenset(_names(count))
