"""What is being localised, what was tested, and what one test said. Nodes are indices here."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

Group = tuple[int, ...]


class Stage(StrEnum):
    """Why a round is run."""

    SCREEN = "screen"
    ISOLATE = "isolate"
    FULL = "full"
    JOINT = "joint"


class FaultKind(StrEnum):
    """What a verdict names. Part of the public interface."""

    NODE = "node"
    LINK = "link"
    LEAF = "leaf"
    LEAF_PAIR = "leaf-pair"
    PAIR = "pair"
    SCALE = "scale"
    SLOW = "slow"
    NONE = "none"
    UNDECIDABLE = "undecidable"


@dataclass(frozen=True, slots=True)
class Problem:
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
            0.03 prices a missed fault, a crash and a restart, at 33 rounds.
        convict_at: Posterior from which a cause is named.
        max_rounds: Hard end.
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
    round_cost: float = 0.03
    convict_at: float = 0.99
    max_rounds: int = 40
    prove: bool = False

    @property
    def group_size(self) -> int:
        """The smallest admissible group."""
        smallest = max(2, self.span)
        if self.max_groups:
            smallest = max(smallest, -(-len(self.nodes) // self.max_groups))
        return min(smallest, len(self.nodes))

    def with_seed(self, seed: int) -> "Problem":
        return replace(self, seed=seed)


@dataclass(frozen=True, slots=True)
class GroupResult:
    """What one group's test said.

    Attributes:
        failed: Repetitions that failed, were wrong, or never ended; None when nothing was measured.
        busbw_gb_per_s: Bus bandwidth of the repetitions that ran; None when not measured.
        silent: The group did not answer in time; its repetitions count as failed.
    """

    reps: int
    failed: int | None
    busbw_gb_per_s: float | None = None
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The groups of the next round: disjoint, each at least the smallest admissible size."""

    number: int
    stage: Stage
    reps: int
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Round:
    """A plan with what came back, in the same order."""

    plan: Plan
    results: tuple[GroupResult, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause the tests support.

    Attributes:
        members: Node names, or leaf names for a leaf or a leaf pair.
        tests: Round number and position of the group in it, for every test behind the finding.
        smallest_size: Group size from which the fault shows; 0 when it shows in any group.
        why: One sentence for people.
    """

    kind: FaultKind
    members: tuple[str, ...]
    posterior: float
    tests: tuple[tuple[int, int], ...] = ()
    smallest_size: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """What the clean tests rule out: faults at least this likely per repetition, this surely."""

    failure_probability: float
    confidence: float
    clean_repetitions: int
    untested: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What is known after the last round, however it ended."""

    findings: tuple[Finding, ...]
    exclusion: Exclusion
    rounds: int
    node_tests: int
    complete: bool
