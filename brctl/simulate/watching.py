"""brctl's own watcher in a simulation: how soon its rules see, what its policy and gates allow.

What it did and whether its breaker is open is remembered here as the real one does on disk.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from brctl.model.verdict import Verdict
from brctl.model.watch.policy import Breaker, WatchMode, WatchPolicy
from brctl.model.watch.state import WatchAct, WatchDecision, WatchState
from brctl.simulate.symptoms import Kind
from brctl.watch.gates import GateFacts, WatchedVerdict, closed_breaker, decide
from brctl.watch.rules import RULES

RULE_OF: Mapping[Kind, str] = {
    Kind.EXPLICIT: "rank-ended", Kind.MACHINE: "kernel-fatal", Kind.HANG: "no-step",
    Kind.SLOW: "slower", Kind.NAN: "not-a-number",
}  # fmt: skip
REMEMBERED = timedelta(days=8)
"""Longer than any breaker's time."""


class SimulatedWatch:
    """A watcher of one job, from the start of a run."""

    def __init__(self, policy: WatchPolicy, cap: WatchMode, began_at: datetime) -> None:
        self._policy, self._cap = policy, cap
        self._state = WatchState(began_at)

    def seen_after_s(self, kind: Kind, chance: float) -> float:
        """Until as many looks saw it as its rule wants; the first comes by chance."""
        rule = RULES[RULE_OF[kind]]
        return rule.every_s * (rule.looks - 1 + chance)

    def decide(
        self, kind: Kind, verdict: Verdict, watched: WatchedVerdict, facts: GateFacts
    ) -> WatchDecision:
        """What becomes of a verdict, and with it of the watcher."""
        found = decide(watched, RULE_OF[kind], self._policy, self._cap, self._state, facts)
        if found.opens_breaker:
            self._state = replace(self._state, breaker_open=found.opens_breaker)
        if found.mode == WatchMode.ACT.value:
            act = WatchAct(
                facts.now, watched.id, verdict.fault, watched.nodes, watched.job, watched.step, 0
            )
            kept = [a for a in self._state.acts if facts.now - a.at < REMEMBERED]
            self._state = replace(self._state, acts=(*kept, act))
        return found

    def close_breaker(self, now: datetime) -> None:
        """A person looked and closes it."""
        self._state = closed_breaker(self._state, now)


def with_breaker(policy: WatchPolicy, percent: float) -> WatchPolicy:
    """The policy with one breaker in place of its own: so many of the nodes in a day."""
    breakers = (Breaker(86_400.0, percent / 100, 1),)
    return replace(policy, limits=replace(policy.limits, breakers=breakers))
