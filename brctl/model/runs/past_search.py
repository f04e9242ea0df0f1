"""What an earlier run found when it looked for a machine that computes wrongly."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PastSearch:
    """One search of a run that has ended.

    Attributes:
        ended_at: Of the run.
        nodes: Whom it named, but for those that a later run gave back.
        found: In words, without the run and its time.
    """

    run: str
    ended_at: datetime
    nodes: tuple[str, ...]
    found: str
