"""A simulated fleet for the localisation bench: incidents, and what a group test would say."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

Cause = tuple[str, tuple[int, ...]]
"""Kind and members: ("node", (5,)), ("leaf", (2,)), ("leaf-pair", (1, 4)), ("pair", (7, 9))."""


@dataclass(frozen=True)
class InjectedCause:
    """What is broken and how it shows.

    Attributes:
        nodes: Node to chance of failing one repetition.
        uplinks, paths: Leaf, or pair of leaves, to the same chance.
        scale_nodes: Node to (smallest group size, chance).
        pairs: Pair of nodes to chance, when both are in one group.
        scale: Smallest size and chance for any group that large, or None.
        slow: Node to fraction of bandwidth lost.
        noise: Chance that a healthy repetition fails.
        sessions: A bad cause fails a whole set-up, or none of it.
        partner_share: A bad node fails only with this share of partners.
        sigma: Relative noise of one bandwidth measurement; 0 for no bandwidths at all.
    """

    nodes: dict[int, float] = field(default_factory=dict)
    uplinks: dict[int, float] = field(default_factory=dict)
    paths: dict[tuple[int, int], float] = field(default_factory=dict)
    scale_nodes: dict[int, tuple[int, float]] = field(default_factory=dict)
    pairs: dict[tuple[int, int], float] = field(default_factory=dict)
    scale: tuple[int, float] | None = None
    slow: dict[int, float] = field(default_factory=dict)
    noise: float = 0.0
    sessions: bool = False
    partner_share: float = 1.0
    sigma: float = 0.0

    def truth(self) -> frozenset[Cause]:
        """The causes a perfect verdict names, and nothing else."""
        found: set[Cause] = {("node", (v,)) for v in (*self.nodes, *self.scale_nodes)}
        found |= {("slow", (v,)) for v in self.slow}
        found |= {("leaf", (leaf,)) for leaf in self.uplinks}
        found |= {("leaf-pair", pair) for pair in self.paths}
        found |= {("pair", pair) for pair in self.pairs}
        if self.scale:
            found.add(("scale", ()))
        return frozenset(found)


class LocalisedFleet:
    """Nodes under leaf switches with one incident; counts the tests it is asked for."""

    def __init__(self, count: int, leaf_size: int, incident: InjectedCause, seed: int) -> None:
        self.count = count
        leaves = max(1, round(count / leaf_size)) if leaf_size else 1
        self.leaf = [v * leaves // count for v in range(count)]
        self.leaves = leaves
        self.incident = incident
        self.rng = np.random.default_rng(seed)
        self.salt = seed
        self.rounds = 0
        self.node_tests = 0

    def test(self, groups: Sequence[Sequence[int]], reps: int) -> list[tuple[int, float | None]]:
        """Run one round of disjoint groups: failed repetitions and bus bandwidth per group."""
        observed = [v for group in groups for v in group]
        assert len(observed) == len(set(observed)), "a node cannot be in two groups of one round"
        assert all(len(group) >= 2 for group in groups)
        self.rounds += 1
        self.node_tests += len(observed)
        spurious = self.rng.binomial(reps, self.incident.noise, len(groups))
        return [
            self._one(group, reps, int(noise))
            for group, noise in zip(groups, spurious, strict=True)
        ]

    def fails(self, groups: Sequence[Sequence[int]]) -> list[bool]:
        """One repetition each, pass or fail: what the published methods ask."""
        return [failed > 0 for failed, _ in self.test(groups, 1)]

    def _one(self, group: Sequence[int], reps: int, spurious: int) -> tuple[int, float | None]:
        chances = self._active(group)
        failed = spurious
        if chances:
            passing = np.ones(reps, dtype=bool)
            for chance in chances:
                draws = 1 if self.incident.sessions else reps
                passing &= np.resize(self.rng.random(draws) >= chance, reps)
            passing[: min(spurious, reps)] = False
            failed = int(reps - passing.sum())
        return failed, self._bandwidth(group)

    def _active(self, group: Sequence[int]) -> list[float]:
        incident = self.incident
        members = set(group)
        chances = [p for v, p in incident.nodes.items() if v in members and self._meets(v, members)]
        chances += [
            p
            for v, (size, p) in incident.scale_nodes.items()
            if v in members and len(group) >= size
        ]
        chances += [p for (a, b), p in incident.pairs.items() if a in members and b in members]
        if incident.scale and len(group) >= incident.scale[0]:
            chances.append(incident.scale[1])
        if incident.uplinks or incident.paths:
            leaves = {self.leaf[v] for v in group}
            if len(leaves) > 1:
                chances += [p for leaf, p in incident.uplinks.items() if leaf in leaves]
            chances += [p for (a, b), p in incident.paths.items() if a in leaves and b in leaves]
        return chances

    def _meets(self, node: int, members: set[int]) -> bool:
        share = self.incident.partner_share
        if share >= 1.0:
            return True
        scale = 1_000_003
        return any(
            ((node * 7919 + other * 104_729 + self.salt * 31) % scale) / scale < share
            for other in members - {node}
        )

    def _bandwidth(self, group: Sequence[int]) -> float | None:
        if not self.incident.sigma:
            return None
        worst = max((loss for v, loss in self.incident.slow.items() if v in group), default=0.0)
        noise = math.exp(self.rng.normal(0.0, self.incident.sigma))
        return 370.0 * (1.0 - worst) * noise
