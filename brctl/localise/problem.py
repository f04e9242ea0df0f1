"""What is being localised, what was tested, and what one test said. Nodes are indices here."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from brctl.model.localisation import Conclusion as Conclusion
from brctl.model.localisation import Exclusion as Exclusion
from brctl.model.localisation import FaultKind as FaultKind
from brctl.model.localisation import Finding as Finding
from brctl.model.localisation import GroupResult as GroupResult
from brctl.model.localisation import Stage as Stage

Group = tuple[int, ...]

BANDWIDTH_BAR = 0.92
"""Share of the fleet's usual bandwidth that groups of a node which is not slow reach."""


@dataclass(frozen=True, slots=True)
class SearchProblem:
    """The fleet under test and what is known before the first test.

    Attributes:
        nodes: Names; everything inside works with their positions.
        leaves: Leaf switch of each node in the same order; empty when the cabling is unknown.
        reps: Repetitions of the collective inside one set-up.
        span: Smallest group that can run at all; tensor times pipeline parallel for replays.
        max_groups: Most groups that may run at once; None for no limit.
        golden: Nodes to prefer as references.
        prior: Odds multiplier per node name, from logs and history; absent means 1.
        seed: The only source of randomness.
        nothing_wrong: Probability before any test that no cause shows in small groups.
        round_cost: Expected new detections below which another round is not worth its time.
            0.05 prices a missed fault, a crash and a restart, at 20 rounds.
        convict_at: Posterior from which a cause is named.
        bar: A node whose groups reach this share of the fleet's bandwidth is not slow.
        max_rounds: Hard end.
        unit: What the tested units are: nodes (or their GPUs), or links when each is one rail.
        prove: Run the whole fleet again without what was found only at full size. The job's
            restart after a swap proves the same, so this is off by default.
    """

    nodes: tuple[str, ...]
    leaves: tuple[str, ...] = ()
    reps: int = 8
    span: int = 1
    max_groups: int | None = None
    golden: frozenset[str] = frozenset()
    prior: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    nothing_wrong: float = 0.1
    round_cost: float = 0.05
    convict_at: float = 0.99
    bar: float = BANDWIDTH_BAR
    max_rounds: int = 40
    unit: FaultKind = FaultKind.NODE
    prove: bool = False

    @property
    def group_size(self) -> int:
        """The smallest admissible group."""
        smallest = max(2, self.span)
        if self.max_groups:
            smallest = max(smallest, -(-len(self.nodes) // self.max_groups))
        return min(smallest, len(self.nodes))


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """The groups of the next round: disjoint, each at least the smallest admissible size."""

    number: int
    stage: Stage
    reps: int
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Round:
    """A plan with what came back, in the same order."""

    plan: RoundPlan
    results: tuple[GroupResult, ...]
