"""What a look of a higher level would add, and what it costs: said before anybody pays it."""

from collections.abc import Mapping
from dataclasses import dataclass

from brctl.model.fault import FaultClass
from brctl.model.verdict import Verdict


@dataclass(frozen=True, slots=True)
class DeeperLook:
    """The next level that asks more than the one before.

    Attributes:
        checks: What it asks in addition.
        at_most_s: The sum of their deadlines on one node; nodes are asked side by side.
        busy: Nodes it would load, by the job whose ranks they carry.
        classes: What its additional checks can speak of.
    """

    level: int
    checks: tuple[str, ...]
    at_most_s: float
    busy: Mapping[str, tuple[str, ...]]
    classes: frozenset[FaultClass] = frozenset()

    def may_settle(self, verdict: Verdict) -> bool:
        """Whether something hints at a class that this look could bear out or clear."""
        return bool(self.classes & {verdict.fault, *(a.fault for a in verdict.alternatives)})
