"""What the tests so far say, in the form the decoders read."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from brctl.localise.causes import Causes
from brctl.localise.problem import Group, GroupResult, Round, Stage

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Failure:
    """A test of a small group in which repetitions failed."""

    causes: Ints
    reps: int
    failed: int
    round_number: int
    position: int
    group: Group


@dataclass(frozen=True, slots=True)
class Speed:
    """A bandwidth as log of its ratio to the round's median; 0 is normal, -0.1 is 10 % slow."""

    causes: Ints
    log_ratio: float
    round_number: int
    position: int
    group: Group


@dataclass(slots=True)
class Ledger:
    """Counts per cause; passing tests need nothing more, failing ones are kept.

    Attributes:
        clean_reps: Per cause, repetitions in tests where everything passed.
        clean_sessions: Per cause, set-ups in which everything passed.
        passed: Per cause, repetitions that passed, whatever the others of their set-up did.
        met: Pairs of nodes that shared a group of at most eight.
    """

    causes: Causes
    clean_reps: Floats = field(init=False)
    clean_sessions: Floats = field(init=False)
    passed: Floats = field(init=False)
    passed_reps: float = 0.0
    passed_sessions: float = 0.0
    failures: list[Failure] = field(default_factory=list)
    speeds: list[Speed] = field(default_factory=list)
    met: set[tuple[int, int]] = field(default_factory=set)
    full_failed: bool = False
    full_passed_reps: int = 0
    node_tests: int = 0
    measured: int = 0

    def __post_init__(self) -> None:
        self.clean_reps = np.zeros(self.causes.count)
        self.clean_sessions = np.zeros(self.causes.count)
        self.passed = np.zeros(self.causes.count)

    def record(self, tested: Round) -> None:
        """Take one round in; groups that were not measured count for nothing."""
        plan = tested.plan
        exercised = self._exercised(plan.groups)
        median = _median_speed(tested.results)
        for position, group in enumerate(plan.groups):
            result = tested.results[position]
            self.node_tests += len(group)
            if len(group) <= 8:
                self._meet(group)
            if result.failed is None:
                continue
            self.measured += 1
            self._count(plan.number, plan.stage, position, group, exercised[position], result)
            if median and result.busbw_gb_per_s and plan.stage in (Stage.SCREEN, Stage.ISOLATE):
                ratio = math.log(result.busbw_gb_per_s / median)
                self.speeds.append(Speed(exercised[position], ratio, plan.number, position, group))

    def _exercised(self, groups: tuple[Group, ...]) -> list[Ints]:
        pairs = [i for i, group in enumerate(groups) if len(group) == 2]
        causes: list[Ints] = [np.empty(0, dtype=np.int64)] * len(groups)
        if pairs:
            many = np.array([groups[i] for i in pairs], dtype=np.int64)
            for i, found in zip(pairs, self.causes.exercised_by_pairs(many), strict=True):
                causes[i] = found
        for i, group in enumerate(groups):
            if len(group) != 2:
                causes[i] = self.causes.exercised(group)
        return causes

    def _meet(self, group: Group) -> None:
        ordered = sorted(group)
        self.met.update((a, b) for i, a in enumerate(ordered) for b in ordered[i + 1 :])

    def _count(
        self,
        number: int,
        stage: Stage,
        position: int,
        group: Group,
        causes: Ints,
        result: GroupResult,
    ) -> None:
        whole = stage in (Stage.FULL, Stage.JOINT)
        self.passed[causes] += result.reps - min(result.failed or 0, result.reps)
        if not result.failed:
            self.clean_reps[causes] += result.reps
            self.clean_sessions[causes] += 1
            self.passed_reps += result.reps
            self.passed_sessions += 1
            self.full_passed_reps += result.reps if stage is Stage.FULL else 0
        elif not whole:
            failed = min(result.failed, result.reps)
            self.failures.append(Failure(causes, result.reps, failed, number, position, group))
        self.full_failed |= stage is Stage.FULL and bool(result.failed)


def _median_speed(results: tuple[GroupResult, ...]) -> float:
    speeds = [r.busbw_gb_per_s for r in results if r.busbw_gb_per_s and r.failed == 0]
    return float(np.median(speeds)) if speeds else 0.0
