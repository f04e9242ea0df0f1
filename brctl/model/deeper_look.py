"""What a look of a higher level would add, and what it costs: said before anybody pays it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeeperLook:
    """The next level that asks more than the one before.

    Attributes:
        checks: What it asks in addition.
        at_most_s: The sum of their deadlines on one node; nodes are asked side by side.
        busy: Nodes it would load, by the job whose ranks they carry.
    """

    level: int
    checks: tuple[str, ...]
    at_most_s: float
    busy: Mapping[str, tuple[str, ...]]
