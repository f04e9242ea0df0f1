"""The search for the machine that computes wrongly: what is asked, what each method said."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Method(StrEnum):
    """Ways to make a machine show that it computes wrongly, from the cheap to the dear."""

    PRODUCTS = "exact products"
    REFERENCE = "reference model"
    REPLAY = "replay"


@dataclass(frozen=True, slots=True)
class CorruptionOrder:
    """What is asked.

    Attributes:
        repetitions: Of every computation on every node, unless the budget ends first.
        not_replayed: Why others do not compute the step that went wrong; "" where they do.
        replays: Of each of the two phases; more, for a fault may be missed in either.
        miss: Chance at which a fault of the planned frequency may be missed.
        budget_s: For all methods together; none begins after it.
        deadline_s: Longest replay of one phase.
        references: Nodes outside the job that answer beside it, so that a few are no majority.
        variables: What the job's replay command is told.
        replay_first: The step at which numbers went wrong is known: before any check of a machine
            others compute that step, once, so that code and data show themselves.
    """

    repetitions: int
    miss: float
    budget_s: float
    deadline_s: float
    references: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    replay_first: bool = False
    replays: int = 0
    not_replayed: str = ""


@dataclass(frozen=True, slots=True)
class MethodReport:
    """What one method said.

    Attributes:
        repetitions: The fewest of any node that was measured to its end.
        wrong: Nodes that computed otherwise than is right, and only those.
        undecided: Nodes of which at least one is wrong, and nobody knows which.
        unmeasured: Nodes that gave no answer, or bits nobody could be compared with, and why.
        everywhere: Every group of nodes shows the trouble: code or data.
        by_results: False where replays with those nodes came to no end, and to no wrong result.
        why: One sentence where there is more to say, or why it was not done.
    """

    method: Method
    seconds: float
    repetitions: int
    wrong: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    everywhere: bool = False
    by_results: bool = True
    why: str = ""


@dataclass(frozen=True, slots=True)
class CorruptionSearch:
    """Every method that was tried, in order; the last one decided, or none did.

    Attributes:
        out_of_budget: Methods were left out, or cut short, because the time was used up.
    """

    order: CorruptionOrder
    reports: tuple[MethodReport, ...]
    out_of_budget: bool = False

    @property
    def wrong(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(node for r in self.reports for node in r.wrong))

    @property
    def undecided(self) -> tuple[str, ...]:
        named = dict.fromkeys(node for r in self.reports for node in r.undecided)
        return tuple(node for node in named if node not in self.wrong)

    @property
    def wrong_references(self) -> tuple[str, ...]:
        return tuple(node for node in self.wrong if node in self.order.references)

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Nodes of which no method that was carried out knows anything."""
        asked = [r.unmeasured for r in self.reports if r.repetitions or r.unmeasured]
        return tuple(node for node in asked[0] if all(node in r for r in asked)) if asked else ()

    @property
    def by_results(self) -> bool:
        """Whether the nodes that are named gave wrong results, and did not just fail."""
        return all(report.by_results for report in self.reports)

    @property
    def everywhere(self) -> bool:
        return any(report.everywhere for report in self.reports)
