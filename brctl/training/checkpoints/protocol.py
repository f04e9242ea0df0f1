"""When a slot may be overwritten. Pure; all ranks decide alike, from one number.

Each rank has two slots of its own and its backup two. Before every update the ranks agree on the
lowest of their votes. A step is saved only if all ranks already have the step in the other slot,
own and backup; else the save is skipped and counted. So at any moment, whatever dies, there is a
step that every shard has.
"""

from dataclasses import dataclass
from enum import Enum, auto

NOTHING = 0
"""The step before the first: nobody needs a slot to have it."""
NOT_FINITE = -1
"""Vote of a rank whose loss is no number: what follows must not replace what is good."""
CANNOT = -2
"""Vote of a rank that cannot save, as when its state outgrew the slot."""


class Save(Enum):
    """What becomes of the save of a step."""

    WRITE = auto()
    SKIP_LAGGING = auto()
    SKIP_NOT_FINITE = auto()
    SKIP_CANNOT = auto()


@dataclass(frozen=True, slots=True)
class Slots:
    """The two slots of a rank, which hold the same steps on all ranks.

    Attributes:
        kept: The step in the slot that is not to be touched, NOTHING if there is none.
        kept_index: That slot, 0 or 1.
    """

    kept: int = NOTHING
    kept_index: int = 1

    @property
    def free_index(self) -> int:
        return 1 - self.kept_index

    def written(self, step: int) -> "Slots":
        """After the save of a step began: it is the one to keep from now on."""
        return Slots(step, self.free_index)


def vote(own: int, backed_up: int, *, finite: bool = True, able: bool = True) -> int:
    """What a rank brings to the agreement: the newest step it has itself and at its backup."""
    if not able:
        return CANNOT
    return min(own, backed_up) if finite else NOT_FINITE


def decide_save(slots: Slots, agreed: int) -> Save:
    """Whether the free slot may be overwritten.

    Args:
        slots: As before this save.
        agreed: The lowest vote of all ranks.
    """
    if agreed == CANNOT:
        return Save.SKIP_CANNOT
    if agreed == NOT_FINITE:
        return Save.SKIP_NOT_FINITE
    return Save.WRITE if agreed >= slots.kept else Save.SKIP_LAGGING
