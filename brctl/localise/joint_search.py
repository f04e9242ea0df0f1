"""The search for faults that only the full job shows: the joint posterior, then proof."""

from dataclasses import dataclass, field

import numpy as np

from brctl.localise.joint import Joint
from brctl.localise.partition import Standing, likely_size, next_partition, standing
from brctl.localise.problem import FaultKind, Finding, Group, Problem, Round, Stage

_MOST_ROUNDS = 30
_PAIR_CAUTION = 1.0
"""There are so many pairs that one fits any run of luck of a flaky node; ask for more."""


@dataclass(slots=True)
class JointSearch:
    """Peels one fault at a time; after each conviction the rest of the fleet is run whole.

    Attributes:
        findings: What was convicted so far.
        ended: True when nothing more is to be tested.
    """

    problem: Problem
    rounds: tuple[Round, ...]
    joint: Joint = field(init=False)
    findings: list[Finding] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    ended: bool = False
    proving: bool = False
    seen: list[Round] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seen = list(self.rounds)
        self._start()

    def _start(self) -> None:
        fleet = [v for v in range(len(self.problem.nodes)) if v not in self.gone]
        self.joint = Joint(np.array(fleet, dtype=np.int64))
        for tested in self.seen:
            self.joint.absorb(tested)

    def absorb(self, tested: Round) -> None:
        """Take a joint round in, convict when the posterior allows, decide what follows."""
        self.seen.append(tested)
        self.joint.absorb(tested)
        if self.proving:
            self._judge_proof(tested)
            return
        now = standing(self.joint)
        found = self._conviction(now)
        if found is not None:
            self.findings.append(found)
            if found.kind is FaultKind.SCALE or not self.problem.prove:
                self.ended = True
                return
            self.gone |= {self.problem.nodes.index(name) for name in found.members}
            self.proving = True
        elif now.null > self.problem.convict_at or len(self.seen) > _MOST_ROUNDS:
            self.ended = True

    def _judge_proof(self, tested: Round) -> None:
        self.proving = False
        if not tested.results[0].failed:
            self.ended = True
            return
        self._start()

    def _conviction(self, now: Standing) -> Finding | None:
        names, bar = self.problem.nodes, self.problem.convict_at
        node = int(now.node.argmax())
        if now.node[node] >= bar:
            size = likely_size(self.joint, node)
            name = names[int(self.joint.fleet[node])]
            why = f"fails only in groups of about {size} nodes or more" if size > 2 else ""
            return Finding(FaultKind.NODE, (name,), float(now.node[node]), (), size, why)
        if now.best_pair_probability >= 1.0 - (1.0 - bar) * _PAIR_CAUTION:
            pair = tuple(names[int(self.joint.fleet[end])] for end in now.best_pair)
            why = "each works with others; they fail in one group together"
            return Finding(FaultKind.PAIR, pair, now.best_pair_probability, (), 2, why)
        if now.scale >= bar:
            size = likely_size(self.joint, None)
            why = f"any group of about {size} nodes or more fails; no node is to blame"
            return Finding(FaultKind.SCALE, (), now.scale, (), size, why)
        return None

    def plan(self, number: int) -> tuple[Stage, list[Group]]:
        """The next groups, as fleet positions; none when the search has ended."""
        if self.ended:
            return Stage.JOINT, []
        if self.proving:
            left = [v for v in range(len(self.problem.nodes)) if v not in self.gone]
            return Stage.JOINT, [tuple(left)] if len(left) > 1 else []
        groups = next_partition(
            self.joint, self.problem.reps, self.problem.max_groups, self.problem.seed * 977 + number
        )
        fleet = self.joint.fleet
        return Stage.JOINT, [tuple(int(fleet[i]) for i in group) for group in groups]
