"""Dual-phase replay: ByteRobust's two fixed rounds, with TP and PP kept and DP varied.

Machine x is in horizontal group floor(x / m) and in vertical group x mod n, with m = k * PP and
n = DP / k. For m <= n two groups meet in one machine at most, so one bad machine is unique; with
several failing groups in a phase the grid of their intersections is all that is known.
"""

from collections.abc import Collection
from dataclasses import dataclass

from brctl.localise.problem import Group
from brctl.model.errors import UsageError
from brctl.model.jobs.job import Job


@dataclass(frozen=True, slots=True)
class DualPhase:
    """The two rounds for one job.

    Attributes:
        span: Nodes one model replica takes: the smallest group that can replay.
        k: Replicas in each horizontal group.
    """

    count: int
    span: int
    k: int

    @property
    def m(self) -> int:
        return self.k * self.span

    @property
    def n(self) -> int:
        return self.count // self.m

    @property
    def cardinality(self) -> int:
        """Most machines that a failing group of each phase can have in common."""
        return -(-self.m // self.n)

    def horizontal(self) -> tuple[Group, ...]:
        """Phase 1: consecutive machines."""
        return tuple(tuple(range(a * self.m, (a + 1) * self.m)) for a in range(self.n))

    def vertical(self) -> tuple[Group, ...]:
        """Phase 2: machines n apart."""
        return tuple(tuple(range(b, self.count, self.n)) for b in range(self.n))

    def parted(self, suspects: Collection[int]) -> tuple[Group, ...]:
        """One more round: as many groups of as many, with the suspects spread over all of them."""
        others = (x for x in range(self.count) if x not in suspects)
        dealt = (*suspects, *others)
        return tuple(tuple(dealt[group :: self.n]) for group in range(self.n))

    def suspects(self, rows: Collection[int], columns: Collection[int]) -> tuple[int, ...]:
        """Machines in a failing group of both phases."""
        return tuple(x for x in range(self.count) if x // self.m in rows and x % self.n in columns)


def replica_span(tensor: int, pipeline: int, ranks_per_node: int) -> int:
    """Nodes that one replica with all its tensor and pipeline ranks takes.

    Raises:
        UsageError: A replica does not fill whole nodes, so groups of nodes cannot replay it.
    """
    ranks = tensor * pipeline
    if ranks % ranks_per_node and ranks_per_node % ranks:
        raise UsageError(f"tp*pp = {ranks} ranks do not fill nodes of {ranks_per_node} ranks")
    return max(1, ranks // ranks_per_node)


def span_of(job: Job) -> int:
    """Nodes one replica of a job takes."""
    sizes = dict(job.axes)
    return replica_span(sizes.get("tp", 1), sizes.get("pp", 1), job.ranks_per_node)


def dual_phase(count: int, span: int, k: int | None = None) -> DualPhase:
    """The paper's plan; without k the largest that still gives a unique answer, m <= n.

    Raises:
        UsageError: The fleet cannot be cut this way.
    """
    valid = [p.k for p in _every_cut(count, span) if p.cardinality == 1]
    if k is None:
        if not valid:
            raise UsageError(f"no k with m = k*{span} <= n = {count}/m: too few replicas")
        return DualPhase(count, span, valid[-1])
    if k < 1 or (count // span) % k or k * span < 2:
        raise UsageError(f"k = {k} does not divide {count // span} replicas into groups")
    return DualPhase(count, span, k)


def sharpest_phases(count: int, span: int) -> DualPhase:
    """The paper's plan, or where no cut gives one machine the one that leaves the fewest.

    Raises:
        UsageError: The fleet cannot be cut into two groups or more.
    """
    cuts = [p for p in _every_cut(count, span) if p.n > 1]
    if not cuts:
        raise UsageError(f"{count} nodes are one group of replicas of {span}: nothing to compare")
    return min(cuts, key=lambda p: (p.cardinality, -p.k))


def _every_cut(count: int, span: int) -> list[DualPhase]:
    if count % span:
        raise UsageError(f"{count} nodes are not whole replicas of {span} nodes")
    replicas = count // span
    return [
        DualPhase(count, span, k)
        for k in range(1, replicas + 1)
        if replicas % k == 0 and k * span >= 2
    ]
