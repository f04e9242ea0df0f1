"""From which copies a job resumes. Pure.

One step for all ranks, the newest that every shard has somewhere; never a mixture. A step is known
by the attempt that computed it, too: a machine that comes back from repair may still hold a step of
the same number that was thrown away since.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from brctl.training.checkpoints.layout import Layout


@dataclass(frozen=True, slots=True, order=True)
class Saved:
    """A step and the attempt that computed it; a later attempt is newer whatever its step."""

    attempt: int
    step: int


class Tier(Enum):
    """Where a copy lies."""

    MEMORY = "memory"
    DISK = "disk"


@dataclass(frozen=True, slots=True)
class ShardCopy:
    """One whole copy of one rank's shard, on one machine."""

    rank: int
    saved: Saved
    tier: Tier
    machine: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The step to resume from, and for every rank where its shard comes from."""

    saved: Saved
    sources: Mapping[int, ShardCopy]


def choose_restore(
    layout: Layout, sources: Iterable[ShardCopy], never: Collection[Saved] = ()
) -> Choice | None:
    """The newest step that every rank's shard has; None when there is none.

    Args:
        layout: Which ranks there are, and on which machine each is now.
        sources: Whole copies whose job, layout and checksums were found right.
        never: Steps not to be offered: they led to a loss that is no number.
    """
    found: dict[Saved, dict[int, ShardCopy]] = {}
    for source in sources:
        shards = found.setdefault(source.saved, {})
        best = shards.get(source.rank)
        if best is None or _cost(layout, source) < _cost(layout, best):
            shards[source.rank] = source
    complete = [s for s, shards in found.items() if len(shards) == layout.world_size]
    offered = [saved for saved in complete if saved not in never]
    return Choice(max(offered), found[max(offered)]) if offered else None


def surviving(
    sources: Iterable[ShardCopy], lost_machines: Collection[int]
) -> tuple[ShardCopy, ...]:
    """What is left when these machines are gone."""
    return tuple(source for source in sources if source.machine not in lost_machines)


def _cost(layout: Layout, source: ShardCopy) -> tuple[bool, bool, int]:
    """Own memory, a peer's memory, own disk, a peer's disk."""
    away = source.machine != layout.machine_of(source.rank)
    return source.tier is Tier.DISK, away, source.machine
