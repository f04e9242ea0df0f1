"""Causes by number: nodes, then leaf uplinks, then pairs of leaves; who exercises which."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brctl.localise.problem import FaultKind, Group, SearchProblem

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Causes:
    """The index of everything that can be broken and be seen by a group of any size.

    Attributes:
        leaf_of: Leaf number per node; all -1 when the cabling is unknown or there is one leaf.
    """

    node_count: int
    leaf_names: tuple[str, ...]
    leaf_of: Ints

    @property
    def leaf_count(self) -> int:
        return len(self.leaf_names)

    @property
    def count(self) -> int:
        return self.node_count + self.leaf_count + self.leaf_count * (self.leaf_count - 1) // 2

    def leaf_pair(self, low: Ints, high: Ints) -> Ints:
        """Cause number of the path between two leaves, low < high."""
        before = low * self.leaf_count - low * (low + 1) // 2
        return self.node_count + self.leaf_count + before + high - low - 1

    def leaves_of_pair(self, cause: int) -> tuple[int, int]:
        """The two leaves of a leaf-pair cause."""
        rest = cause - self.node_count - self.leaf_count
        for low in range(self.leaf_count):
            width = self.leaf_count - low - 1
            if rest < width:
                return low, low + 1 + rest
            rest -= width
        raise IndexError(cause)

    def kind(self, cause: int) -> FaultKind:
        if cause < self.node_count:
            return FaultKind.NODE
        return FaultKind.LEAF if cause < self.node_count + self.leaf_count else FaultKind.LEAF_PAIR

    def exercised(self, group: Group) -> Ints:
        """Causes a test of this group can trigger."""
        members = np.asarray(group, dtype=np.int64)
        if not self.leaf_count:
            return members
        leaves = np.unique(self.leaf_of[members])
        if len(leaves) < 2:
            return members
        low, high = np.triu_indices(len(leaves), 1)
        pairs = self.leaf_pair(leaves[low], leaves[high])
        return np.concatenate([members, self.node_count + leaves, pairs])

    def exercised_by_pairs(self, pairs: Ints) -> list[Ints]:
        """The same for many groups of two at once: one array a group."""
        if not self.leaf_count:
            return list(pairs)
        leaves = np.sort(self.leaf_of[pairs], axis=1)
        path = self.leaf_pair(leaves[:, 0], leaves[:, 1])
        full = np.column_stack([pairs, self.node_count + leaves, path])
        crossing = leaves[:, 0] != leaves[:, 1]
        return [row if cross else row[:2] for row, cross in zip(full, crossing, strict=True)]


def index_causes(problem: SearchProblem) -> Causes:
    """Number the causes of a problem; a fleet under one leaf has no paths between leaves."""
    count = len(problem.nodes)
    names = tuple(dict.fromkeys(problem.leaves))
    if len(names) < 2:
        return Causes(count, (), np.full(count, -1, dtype=np.int64))
    number = {name: i for i, name in enumerate(names)}
    leaf_of = np.array([number[leaf] for leaf in problem.leaves], dtype=np.int64)
    return Causes(count, names, leaf_of)
