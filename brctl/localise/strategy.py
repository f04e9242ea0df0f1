"""Which groups to test next, and when to stop: pairs, verified-good references, Bayes."""

from dataclasses import dataclass, field

import numpy as np

from brctl.localise.beliefs import ALL_CLASSES, believe, live_classes, same_noise
from brctl.localise.causes import Causes, index_causes
from brctl.localise.isolate import References, isolate_nodes, isolate_paths
from brctl.localise.joint_search import JointSearch
from brctl.localise.ledger import Ledger
from brctl.localise.mixture import Belief, settle_both
from brctl.localise.pairing import screen
from brctl.localise.problem import (
    FaultKind,
    Group,
    GroupResult,
    Round,
    RoundPlan,
    SearchProblem,
    Stage,
)
from brctl.localise.slowness import believe_slow

_SUSPECT = 0.01
_GOOD = 0.005
_LIKELY = 0.6
_DOUBTFUL_PATHS = 12
_COVERED = 0.95
_MOST_SCREENS_FOR_COVER = 3
_STALL_ROUNDS = 2
_MOST_PEELS = 4
_NOTHING_MORE = 0.95
"""A second fault of another rate is rare; counts must speak for it."""
_STALL_CHANGE = 0.01


def _no_worse(now: Belief, before: Belief | None) -> Belief:
    """A clean run of the whole fleet speaks for everybody.

    It may shift belief towards flaky faults, but nobody becomes a suspect by passing.
    """
    if before is None:
        return now
    return Belief(np.minimum(now.probability, before.probability), now.nothing, now.gain)


@dataclass(slots=True)
class Localiser:
    """The search: results in, next groups out. No clock, no randomness but the problem's seed.

    Attributes:
        classes: Kinds of incidents that the tests have not ruled out.
        stalled: Rounds since anything was learnt.
    """

    problem: SearchProblem
    causes: Causes = field(init=False)
    ledger: Ledger = field(init=False)
    rounds: list[Round] = field(default_factory=list)
    failing: Belief | None = None
    slow: Belief | None = None
    joint: JointSearch | None = None
    classes: tuple[int, ...] = ALL_CLASSES
    stalled: int = 0

    def __post_init__(self) -> None:
        self.causes = index_causes(self.problem)
        self.ledger = Ledger(self.causes)

    def absorb(self, plan: RoundPlan, results: tuple[GroupResult, ...]) -> None:
        """Take the results of a plan, in its order, and update what is believed."""
        tested = Round(plan, results)
        self.rounds.append(tested)
        self.ledger.record(tested)
        if plan.stage is Stage.JOINT and self.joint is not None:
            self.joint.absorb(tested)
        before = self.failing, self.slow
        failing = believe(self.problem, self.ledger, classes=self.classes)
        self.classes = live_classes(failing, self.classes)
        self.failing, self.slow = settle_both(
            failing,
            believe_slow(self.problem, self.ledger),
            self.problem.nothing_wrong,
            self.problem.convict_at,
        )
        self._look_behind_convicted()
        if self._is_clean_whole(plan, results):
            self.failing = _no_worse(self.failing, before[0])
        self._note_stall(before)

    def _is_clean_whole(self, plan: RoundPlan, results: tuple[GroupResult, ...]) -> bool:
        """The whole fleet in one group, without a failure."""
        whole = len(plan.groups) == 1 and len(plan.groups[0]) == len(self.problem.nodes)
        return whole and results[0].failed == 0

    def _look_behind_convicted(self) -> None:
        """Faults of another rate than the convicted ones: believe the rest by itself."""
        bar = self.problem.convict_at
        for _ in range(_MOST_PEELS):
            if self.failing is None:
                return
            found = frozenset(np.nonzero(self.failing.probability >= bar)[0].tolist())
            if not found or not self._unexplained(found):
                return
            rest = believe(self.problem, self.ledger, found, same_noise(self.classes))
            behind, _ = settle_both(rest, None, _NOTHING_MORE, bar)
            together = np.maximum(self.failing.probability, behind.probability)
            gain = max(self.failing.gain, behind.gain)
            fresh = bool((behind.probability >= bar).any())
            self.failing = Belief(together, self.failing.nothing, gain)
            if not fresh:
                return

    def _unexplained(self, found: frozenset[int]) -> bool:
        """A failure of two repetitions or more without a convicted cause."""
        return any(
            failure.failed > 1 and not found.intersection(failure.causes.tolist())
            for failure in self.ledger.failures
        )

    def _note_stall(self, before: tuple[Belief | None, Belief | None]) -> None:
        change = max(
            float(np.abs(new.probability - old.probability).max()) if old and new else 1.0
            for old, new in zip(before, (self.failing, self.slow), strict=True)
            if new is not None
        )
        self.stalled = self.stalled + 1 if change < _STALL_CHANGE else 0

    def plan(self) -> RoundPlan | None:
        """The next round, or None when another one is not worth its time."""
        if len(self.problem.nodes) < 2 or len(self.rounds) >= self.problem.max_rounds:
            return None
        if self.failing is None:
            return self._plan(Stage.SCREEN, self._screen(range(len(self.problem.nodes))))
        if self.joint is None and self._wants_full():
            return self._plan(Stage.FULL, [tuple(range(len(self.problem.nodes)))])
        if self.joint is None and self._reproduced_only_at_size():
            self.joint = JointSearch(self.problem, tuple(self.rounds))
        if self.joint is not None:
            stage, groups = self.joint.plan(len(self.rounds) + 1)
            return self._plan(stage, groups) if groups else None
        if self._is_stuck() or (
            self._gain() <= self.problem.round_cost and not self._nearly_convicted()
        ):
            return None
        return self._plan(Stage.ISOLATE, self._isolate())

    def _plan(self, stage: Stage, groups: list[Group]) -> RoundPlan | None:
        if not groups:
            return None
        return RoundPlan(len(self.rounds) + 1, stage, self.problem.reps, tuple(groups))

    def convicted(self) -> dict[int, float]:
        """Causes whose posterior is high enough to name, failing ones first."""
        found: dict[int, float] = {}
        for belief in (self.failing, self.slow):
            if belief is not None:
                for cause in np.nonzero(belief.probability >= self.problem.convict_at)[0]:
                    found.setdefault(int(cause), float(belief.probability[cause]))
        return found

    def suspicion(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Per cause, the larger of the two posteriors."""
        assert self.failing is not None  # noqa: S101  # plan() is only past the first round here
        if self.slow is None:
            return self.failing.probability
        return np.maximum(self.failing.probability, self.slow.probability)

    def _gain(self) -> float:
        return sum(belief.gain for belief in (self.failing, self.slow) if belief is not None)

    def _nearly_convicted(self) -> bool:
        """Somebody is likelier bad than not; one more round names or clears them."""
        suspicion = self.suspicion()
        return bool(((suspicion > _LIKELY) & (suspicion < self.problem.convict_at)).any())

    def _is_stuck(self) -> bool:
        return self.stalled >= _STALL_ROUNDS

    def _wants_full(self) -> bool:
        """Small groups look clean: does the whole job still fail?"""
        if self.failing is None or self.convicted() or len(self.problem.nodes) < 3:
            return False
        if self.ledger.full_failed or self.ledger.full_passed_reps:
            return False
        if self.slow is not None and self.slow.gain > self.problem.round_cost * 5:
            return False
        if not self.ledger.clean_sessions[: self.causes.node_count].all():
            return False
        return self.failing.nothing > 0.3 and self._covered()

    def _covered(self) -> bool:
        """Enough paths between leaves were crossed that a bad one would have shown."""
        if not self.causes.leaf_count or len(self.rounds) >= _MOST_SCREENS_FOR_COVER:
            return True
        network = self.ledger.clean_sessions[self.causes.node_count :]
        return float((network > 0).mean()) >= _COVERED

    def _reproduced_only_at_size(self) -> bool:
        return self.ledger.full_failed and not self.convicted()

    def _screen(self, pool: "range | list[int]", max_groups: int | None = None) -> list[Group]:
        problem = self.problem
        size = problem.group_size
        if max_groups is not None:
            size = max(size, -(-len(pool) // max(1, max_groups)))
        turn, seed = len(self.rounds), problem.seed
        apart: list[Group] = []
        for inside in self._behind_dead_uplinks(pool):
            # Across a dead uplink everything fails and nothing is learnt about the nodes.
            apart += screen(index_causes(SearchProblem(problem.nodes)), inside, size, turn, seed)
            pool = [v for v in pool if v not in set(inside)]
        return screen(self.causes, list(pool), size, turn, seed) + apart

    def _behind_dead_uplinks(self, pool: "range | list[int]") -> list[list[int]]:
        """Nodes of the pool under leaves whose uplink is convicted, leaf by leaf."""
        if self.failing is None:
            return []
        first = self.causes.node_count
        dead = [c - first for c in self.convicted() if self.causes.kind(c) is FaultKind.LEAF]
        leaf_of = self.causes.leaf_of
        return [[v for v in pool if leaf_of[v] == leaf] for leaf in dead]

    def _isolate(self) -> list[Group]:
        """Suspects with references, doubtful paths afresh, and everybody else screened again."""
        problem, causes = self.problem, self.causes
        suspicion = self.suspicion()
        convicted = self.convicted()
        order = np.argsort(-suspicion, kind="stable")
        doubtful = [int(c) for c in order if suspicion[c] > _SUSPECT and int(c) not in convicted]
        suspects = {c: float(suspicion[c]) for c in doubtful if c < causes.node_count}
        paths = [c for c in doubtful if c >= causes.node_count][:_DOUBTFUL_PATHS]
        references = self._references(suspicion, set(suspects) | set(convicted), paths, convicted)
        max_groups = problem.max_groups or len(problem.nodes)
        size = max(2, problem.span)
        groups = isolate_nodes(suspects, references, self.ledger, size, max_groups)
        groups += isolate_paths(paths, causes, references, size, max_groups - len(groups))
        busy = {node for group in groups for node in group}
        pool = [v for v in range(causes.node_count) if v not in busy and v not in convicted]
        if suspects and not groups:
            pool = [v for v in range(causes.node_count) if v not in convicted]
        left = max_groups - len(groups)
        return groups + (self._screen(pool, left if problem.max_groups else None) if left else [])

    def _references(
        self,
        suspicion: np.ndarray[tuple[int], np.dtype[np.float64]],
        excluded: set[int],
        paths: list[int],
        convicted: dict[int, float],
    ) -> References:
        causes, problem = self.causes, self.problem
        clean = self.ledger.clean_sessions
        good = [
            v
            for v in range(causes.node_count)
            if v not in excluded and suspicion[v] < _GOOD and clean[v] > 0
        ]
        golden = problem.golden
        good.sort(key=lambda v: (problem.nodes[v] not in golden, suspicion[v], -clean[v]))
        shunned = frozenset(
            c - causes.node_count for c in [*paths, *convicted] if causes.kind(c) is FaultKind.LEAF
        )
        return References(causes, self.ledger.met, dict.fromkeys(good), shunned)
