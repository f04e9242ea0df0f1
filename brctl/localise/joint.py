"""Faults that appear only together: nodes above a size, bad pairs, sheer scale.

Used when every small group is clean and the full job fails. One fault at a time: the posterior is
exact over (node, smallest size), pairs of nodes and pure scale; the next partition is the one of
many candidates with the largest expected information.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from brctl.localise.problem import Round

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]

NOISE = 0.01
# Fail rate, whether a set-up fails as a whole, weight.
CLASSES = ((0.98, False, 0.55), (0.6, False, 0.22), (0.3, False, 0.16), (0.6, True, 0.07))
NODE_SHARE, PAIR_SHARE, SCALE_SHARE, NULL_SHARE = 0.65, 0.2, 0.12, 0.03
_TESTABLE = 0.8
"""A node that fails only in nearly the whole fleet cannot be told from sheer scale."""
_FORGET = -16.0
"""Log odds against the best hypothesis below which a pair is dropped."""


def sizes_for(count: int) -> Ints:
    """Candidate smallest sizes: 2, 3, 4, 6, 8, 12, ... up to the whole fleet."""
    sizes = {2, 3, count}
    step = 4
    while step <= count:
        sizes |= {step, min(count, step * 3 // 2)}
        step *= 2
    return np.array(sorted(s for s in sizes if s <= count), dtype=np.int64)


@dataclass(slots=True)
class Joint:
    """The posterior, updated round by round.

    Attributes:
        fleet: Nodes still in play, as fleet positions; a convicted node leaves.
        node: Log weights, classes by nodes by sizes.
        low, high: The surviving pairs of nodes, low < high.
        pair: Log weights, classes by surviving pairs.
        scale: Log weights, classes by sizes.
        null: Log weight of "the full job failed by chance".
        history: One number per node that differs where the partitions so far differed.
    """

    fleet: Ints
    sizes: Ints = field(init=False)
    node: Floats = field(init=False)
    low: NDArray[np.int32] = field(init=False)
    high: NDArray[np.int32] = field(init=False)
    pair: Floats32 = field(init=False)
    scale: Floats = field(init=False)
    null: float = field(init=False)
    history: Ints = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.fleet)
        self.sizes = sizes_for(count)
        weight = np.log([w for _, _, w in CLASSES])
        kinds = len(self.sizes)
        testable = self.sizes <= count * _TESTABLE
        start = np.where(testable, math.log(NODE_SHARE / (count * testable.sum())), -np.inf)
        self.node = np.broadcast_to(
            weight[:, None, None] + start[None, None, :], (len(CLASSES), count, kinds)
        ).copy()
        low, high = np.triu_indices(count, 1)
        self.low, self.high = low.astype(np.int32), high.astype(np.int32)
        alone = weight[:, None] + math.log(PAIR_SHARE / len(low))
        self.pair = np.broadcast_to(alone, (len(CLASSES), len(low))).astype(np.float32)
        self.scale = np.broadcast_to(
            weight[:, None] + math.log(SCALE_SHARE / kinds), (len(CLASSES), kinds)
        ).copy()
        self.null = math.log(NULL_SHARE)
        self.history = np.zeros(count, dtype=np.int64)

    def absorb(self, tested: Round) -> None:
        """Take a round of any stage in; nodes that left the fleet are ignored."""
        member, groups = self._membership(tested)
        if not len(groups):
            return
        ratio = np.stack([_evidence(groups, rate, session) for rate, session, _ in CLASSES])
        size = groups[:, 2].astype(np.int64)
        seen = member >= 0
        active = size[member[seen]][:, None] >= self.sizes[None, :]
        self.node[:, seen] += ratio[:, member[seen]][:, :, None] * active[None]
        self.scale += ratio @ (size[:, None] >= self.sizes[None, :])
        self._absorb_pairs(member, ratio)
        self.history = _refine(self.history, member)
        self._forget()

    def _membership(self, tested: Round) -> tuple[Ints, Floats]:
        """Group number per node of the fleet (-1 none), and reps, failed, size per group."""
        position = {int(node): i for i, node in enumerate(self.fleet)}
        member = np.full(len(self.fleet), -1, dtype=np.int64)
        rows: list[tuple[float, float, float]] = []
        for group, result in zip(tested.plan.groups, tested.results, strict=True):
            if result.failed is None:
                continue
            failed = min(result.failed, result.reps)
            if failed and any(node not in position for node in group):
                continue
            for node in group:
                if node in position:
                    member[position[node]] = len(rows)
            rows.append((result.reps, failed, len(group)))
        return member, np.array(rows, dtype=np.float64).reshape(-1, 3)

    def _absorb_pairs(self, member: Ints, ratio: Floats) -> None:
        small: NDArray[np.int32] = member.astype(np.int32)
        left = small[self.low]
        together = np.nonzero(np.logical_and(left == small[self.high], np.greater_equal(left, 0)))[
            0
        ]
        group = left[together]
        for row in range(len(CLASSES)):
            self.pair[row, together] += ratio[row].astype(np.float32)[group]

    def _forget(self) -> None:
        best = max(self.node.max(), self.scale.max(), self.null, float(self.pair.max(initial=-99)))
        keep = self.pair.max(axis=0, initial=-np.inf) > best + _FORGET
        if len(keep) and keep.mean() < 0.7:
            self.low, self.high, self.pair = self.low[keep], self.high[keep], self.pair[:, keep]


def _evidence(groups: Floats, rate: float, session: bool) -> Floats:
    """Log ratio of each group's result with the cause active against without."""
    reps, failed = groups[:, 0], groups[:, 1]
    quiet = failed * math.log(NOISE) + (reps - failed) * math.log1p(-NOISE)
    fails = 1.0 - (1.0 - NOISE) * (1.0 - rate)
    if not session:
        return np.asarray(failed * math.log(fails) + (reps - failed) * math.log1p(-fails) - quiet)
    bad = failed * math.log(0.95) + (reps - failed) * math.log(0.05)
    return np.asarray(np.logaddexp(math.log(rate) + bad, math.log1p(-rate) + quiet) - quiet)


def _refine(history: Ints, member: Ints) -> Ints:
    _, fresh = np.unique(history * (member.max() + 2) + member + 1, return_inverse=True)
    return np.asarray(fresh, dtype=np.int64)
