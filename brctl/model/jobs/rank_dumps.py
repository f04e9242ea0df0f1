"""What was got of a job's ranks before they end."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RankDumps:
    """Which ranks gave what.

    Attributes:
        silent: Why each rank without a stack gave none.
        recorders: Ranks whose flight recorders answered.
        late: The time was over before every recorder was asked.
    """

    asked: tuple[int, ...]
    silent: Mapping[int, str]
    recorders: tuple[int, ...]
    late: bool = False
