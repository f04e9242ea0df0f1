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
PAIR_CLASSES = ((0.98, False, 0.75), (0.5, False, 0.25))
NODE_SHARE, PAIR_SHARE, SCALE_SHARE, NULL_SHARE = 0.65, 0.2, 0.12, 0.03
_TESTABLE = 0.8
"""A node that fails only in nearly the whole fleet cannot be told from sheer scale."""
_SMALL = 8
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
        pair: Log weights, pair classes by surviving pairs; float32 and int16, because four
            thousand nodes have eight million pairs.
        scale: Log weights, classes by sizes.
        null: Log weight of "the full job failed by chance".
        history: One number per node that differs where the partitions so far differed.
    """

    fleet: Ints
    sizes: Ints = field(init=False)
    node: Floats = field(init=False)
    low: NDArray[np.int16] = field(init=False)
    high: NDArray[np.int16] = field(init=False)
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
        nodes = np.arange(count, dtype=np.int16)
        self.low = np.repeat(nodes, count - 1 - np.arange(count))
        self.high = np.concatenate([nodes[i + 1 :] for i in range(count)])
        alone = [math.log(w * PAIR_SHARE / len(self.low)) for _, _, w in PAIR_CLASSES]
        self.pair = np.empty((len(PAIR_CLASSES), len(self.low)), dtype=np.float32)
        self.pair[:] = np.array(alone, dtype=np.float32)[:, None]
        self.scale = np.broadcast_to(
            weight[:, None] + math.log(SCALE_SHARE / kinds), (len(CLASSES), kinds)
        ).copy()
        self.null = math.log(NULL_SHARE)
        self.history = np.zeros(count, dtype=np.int64)

    def absorb(self, tested: Round, *, forget: bool = True) -> None:
        """Take a round of any stage in; nodes that left the fleet are ignored."""
        member, groups = self._membership(tested)
        if not len(groups):
            return
        ratio = np.stack([_evidence(groups, rate, session) for rate, session, _ in CLASSES])
        size = groups[:, 2].astype(np.int64)
        present = member >= 0
        active = size[member[present]][:, None] >= self.sizes[None, :]
        self.node[:, present] += ratio[:, member[present]][:, :, None] * active[None]
        self.scale += ratio @ (size[:, None] >= self.sizes[None, :])
        self._absorb_pairs(member, groups)
        self.history = _refine(self.history, member)
        if forget:
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

    def _absorb_pairs(self, member: Ints, groups: Floats) -> None:
        ratio = np.stack([_evidence(groups, rate, session) for rate, session, _ in PAIR_CLASSES])
        added = ratio.astype(np.float32)
        together = self._small_groups(member, groups)
        if together is None:
            small = member.astype(np.int16)
            left = small[self.low]
            same = left == small[self.high]
            same &= np.greater_equal(left, 0)
            together = np.flatnonzero(same)
        if len(together) == self.pair.shape[1] and len(groups) == 1:
            self.pair += added
            return
        group = member[self.low[together]]
        for row in range(len(PAIR_CLASSES)):
            self.pair[row, together] += added[row, group]

    def _small_groups(self, member: Ints, groups: Floats) -> Ints | None:
        """Positions of the pairs that met, without a look at all of them; None if it is no use."""
        count = len(self.fleet)
        if groups[:, 2].max() > _SMALL or len(self.low) != count * (count - 1) // 2:
            return None
        order = np.argsort(member, kind="stable")
        order = order[member[order] >= 0]
        found = []
        for apart in range(1, _SMALL):
            one, other = order[:-apart], order[apart:]
            same = member[one] == member[other]
            low, high = one[same], other[same]
            found.append(low * count - low * (low + 1) // 2 + high - low - 1)
        return np.concatenate(found)

    def _forget(self) -> None:
        """Drop pairs that lag hopelessly behind the best hypothesis."""
        if not len(self.low):
            return
        likeliest = self.pair.max(axis=0)
        best = max(self.node.max(), self.scale.max(), self.null, float(likeliest.max()))
        keep = likeliest > best + _FORGET
        if np.count_nonzero(keep) < 0.7 * len(keep):
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
