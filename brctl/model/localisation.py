"""What subset tests say and what follows from them: results, findings, a whole search."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


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
    JOB = "job"
    NONE = "none"
    UNDECIDABLE = "undecidable"


@dataclass(frozen=True, slots=True)
class Path:
    """What a path between two nodes carries, at its best: load beside a test only adds time.

    Attributes:
        delay_us: One way of a message of a few bytes: half of there and back.
        there_gb_per_s: A large message from the first node to the second.
        back_gb_per_s: The same from the second to the first.
    """

    delay_us: float
    there_gb_per_s: float
    back_gb_per_s: float


@dataclass(frozen=True, slots=True)
class GroupResult:
    """What one group's test said.

    Attributes:
        failed: Repetitions that failed, were wrong, or never ended; None when nothing was measured.
        busbw_gb_per_s: Bus bandwidth of the repetitions that ran; None when not measured.
        silent: The group did not answer in time; its repetitions count as failed.
        path: The slowest path between two nodes; only a pingpong measures it.
        nonfinite: Of the failed, those that came to their end with numbers that are none, or with a
            loss that jumped.
        differs: Of the failed, those whose result has other bits than that of most groups.
        apart: Not measured because results differ between groups, and which is right is not known.
        digests: What each repetition of a replay computed; "" for one that told none.
        kind: What its nodes are, where replays say it: digests are compared within one kind.
    """

    reps: int
    failed: int | None
    busbw_gb_per_s: float | None = None
    silent: bool = False
    path: Path | None = None
    nonfinite: int = 0
    differs: int = 0
    apart: bool = False
    digests: tuple[str, ...] = ()
    kind: str = ""


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


@dataclass(frozen=True, slots=True)
class RoundReport:
    """One round as people and programs see it.

    Attributes:
        suspects: The likeliest nodes after it, with their probability.
        notes: Sentences about single groups that could not be read.
    """

    number: int
    stage: Stage
    groups: tuple[tuple[str, ...], ...]
    results: tuple[GroupResult, ...]
    seconds: float
    suspects: tuple[tuple[str, float], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bisection:
    """Everything about one search.

    Attributes:
        reps: Repetitions asked for in one set-up.
        ended: Why it ended: "settled", "budget", "interrupted", or what broke.
        unexplained: Repetitions failed that no finding explains.
        notes: What came before the rounds: preflight, tests inside nodes.
    """

    id: str
    started_at: datetime
    seconds: float
    nodes: tuple[str, ...]
    op: str
    size_bytes: int
    reps: int
    budget_s: float
    seed: int
    runner: str
    rounds: tuple[RoundReport, ...]
    conclusion: Conclusion
    ended: str
    unexplained: bool
    notes: tuple[str, ...] = ()

    def computed_wrongly(self, finding: Finding) -> bool:
        """Every failure behind it is a wrong result, not an end without one."""
        reports = {report.number: report for report in self.rounds}
        results = [reports[number].results[place] for number, place in finding.tests]
        return bool(results) and all(r.failed == r.nonfinite + r.differs for r in results)
