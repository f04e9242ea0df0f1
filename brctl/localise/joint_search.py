"""The search for faults that only the full job shows: the joint posterior, then proof."""

from dataclasses import dataclass, field

import numpy as np

from brctl.localise.joint import Joint
from brctl.localise.partition import Standing, next_partition, standing
from brctl.localise.problem import FaultKind, Finding, Group, Round, SearchProblem, Stage

_MOST_ROUNDS = 30
_PROOFS = 5


@dataclass(slots=True)
class JointSearch:
    """Peels one fault at a time; after each conviction the rest of the fleet is run whole.

    Attributes:
        findings: What was convicted so far.
        ended: True when nothing more is to be tested.
    """

    problem: SearchProblem
    rounds: tuple[Round, ...]
    joint: Joint = field(init=False)
    now: Standing = field(init=False)
    findings: list[Finding] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    ended: bool = False
    proving: bool = False
    absorbed: list[Round] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.absorbed = list(self.rounds)
        self._start()

    def _start(self) -> None:
        fleet = [v for v in range(len(self.problem.nodes)) if v not in self.gone]
        self.joint = Joint(np.array(fleet, dtype=np.int64))
        for number, tested in enumerate(self.absorbed, 1):
            self.joint.absorb(tested, forget=number == len(self.absorbed))
        self.now = standing(self.joint)

    def absorb(self, tested: Round) -> None:
        """Take a joint round in, convict when the posterior allows, decide what follows."""
        self.absorbed.append(tested)
        if self.proving:
            self._judge_proof(tested)
            return
        self.joint.absorb(tested)
        self.now = standing(self.joint)
        found = self._conviction(self.now)
        if found is not None:
            self.findings.append(found)
            if found.kind is FaultKind.SCALE or not self.problem.prove:
                self.ended = True
                return
            self.gone |= {self.problem.nodes.index(name) for name in found.members}
            self.proving = True
        elif self.now.null > self.problem.convict_at or len(self.absorbed) > _MOST_ROUNDS:
            self.ended = True

    def _judge_proof(self, tested: Round) -> None:
        self.proving = False
        if not tested.results[0].failed:
            self.ended = True
            return
        self._start()

    def _conviction(self, now: Standing) -> Finding | None:
        names, bar = self.problem.nodes, self.problem.convict_at
        by_node = now.by_node
        node = int(by_node.argmax())
        if by_node[node] >= bar:
            size = now.likely_size(node)
            name = names[int(self.joint.fleet[node])]
            why = f"fails only in groups of about {size} nodes or more" if size > 2 else ""
            return Finding(FaultKind.NODE, (name,), float(by_node[node]), (), size, why)
        ends, pair_probability = now.best_pair()
        if pair_probability >= bar and not self._doubted(ends):
            pair = tuple(names[int(self.joint.fleet[end])] for end in ends)
            why = "each works with others; they fail in one group together"
            return Finding(FaultKind.PAIR, pair, pair_probability, (), 2, why)
        scale = float(now.scale.sum())
        if scale >= bar:
            size = now.likely_size(None)
            why = f"any group of about {size} nodes or more fails; no node is to blame"
            return Finding(FaultKind.SCALE, (), scale, (), size, why)
        return None

    def _doubted(self, ends: tuple[int, int]) -> bool:
        """An end that was rarely seen clean without the other may be a flaky node by itself.

        There are so many pairs that one of them fits any run of luck of such a node.
        """
        one, other = (int(self.joint.fleet[end]) for end in ends)
        return min(self._clean_without(one, other), self._clean_without(other, one)) < _PROOFS

    def _clean_without(self, node: int, other: int) -> int:
        return sum(
            result.failed == 0
            for tested in self.absorbed
            for group, result in zip(tested.plan.groups, tested.results, strict=True)
            if node in group and other not in group
        )

    def _apart(self, ends: tuple[int, int]) -> list[Group]:
        """Two halves of the fleet with the ends of a suspected pair in different ones."""
        one, other = (int(self.joint.fleet[end]) for end in ends)
        rest = [int(node) for node in self.joint.fleet if int(node) not in (one, other)]
        turn = len(self.absorbed) % 2
        halves = (
            (rest[::2], rest[1::2]) if turn else (rest[: len(rest) // 2], rest[len(rest) // 2 :])
        )
        return [tuple(sorted([one, *halves[0]])), tuple(sorted([other, *halves[1]]))]

    def plan(self, number: int) -> tuple[Stage, list[Group]]:
        """The next groups, as fleet positions; none when the search has ended."""
        if self.ended:
            return Stage.JOINT, []
        if self.proving:
            left = [v for v in range(len(self.problem.nodes)) if v not in self.gone]
            return Stage.JOINT, [tuple(left)] if len(left) > 1 else []
        ends, pair_probability = self.now.best_pair()
        if pair_probability >= self.problem.convict_at and len(self.joint.fleet) > 3:
            return Stage.JOINT, self._apart(ends)
        groups = next_partition(
            self.now, self.problem.reps, self.problem.max_groups, self.problem.seed * 977 + number
        )
        fleet = self.joint.fleet
        return Stage.JOINT, [tuple(int(fleet[i]) for i in group) for group in groups]
