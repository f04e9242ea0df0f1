"""Which machine keeps the copy of which rank: four rules in order, then verified. Pure.

A group is lost with every machine that carries one of its ranks. Then each rank on those machines
needs its copy on a machine outside of them; a rule is taken only if that holds for all groups.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from brctl.training.checkpoints.layout import Layout
from brctl.training.checkpoints.matching import match

Backups = tuple[int, ...]
"""For each rank the rank whose machine keeps its copy; no rank keeps two."""

MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class Loss:
    """How many groups of one kind cannot be lost without losing data."""

    kind: str
    lost: int
    groups: int


@dataclass(frozen=True, slots=True)
class Placement:
    """The chosen rule, what it gives, and what it does not cover."""

    rule: str
    backups: Backups
    losses: tuple[Loss, ...]

    @property
    def uncovered(self) -> tuple[Loss, ...]:
        return tuple(loss for loss in self.losses if loss.lost)


def place_backups(layout: Layout) -> Placement:
    """The first rule that loses nothing; else the next machine, with what that does not cover."""
    for name, rule in RULES:
        backups = rule(layout)
        losses = count_losses(layout, backups) if backups else ()
        if backups and not any(loss.lost for loss in losses):
            return Placement(name, backups, losses)
    backups = next_machine(layout)
    return Placement(NEXT_MACHINE, backups, count_losses(layout, backups))


def count_losses(layout: Layout, backups: Backups) -> tuple[Loss, ...]:
    """The definition: for single machines and every kind of group, how many lose data."""
    targets = [_machines(layout, (backups[r] for r in layout.ranks_on(m)))
               for m in range(layout.machines)]  # fmt: skip
    singles = tuple(1 << machine for machine in range(layout.machines))
    kinds = {MACHINE: singles, **layout.groups()}
    return tuple(_loss(kind, groups, targets) for kind, groups in kinds.items())


def shifted(layout: Layout, pp: int, dp: int) -> Backups:
    """Each rank's copy goes `pp` stages and `dp` replicas further."""
    position = layout.coordinates

    def target(rank: int) -> int:
        at = position(rank)
        moved = {**at, **{a: at[a] + by for a, by in (("pp", pp), ("dp", dp)) if a in at}}
        return layout.rank_at(moved)

    return tuple(target(rank) for rank in range(layout.world_size))


def half_shift(layout: Layout) -> Backups:
    """Half of the stages and half of the replicas further: an exchange where both are even."""
    return shifted(layout, layout.size("pp") // 2, layout.size("dp") // 2)


def machine_shift(layout: Layout) -> Backups:
    """Half of the stages further, and as many replicas as one machine carries."""
    replicas = max(1, layout.ranks_per_machine // layout.size("tp"))
    return shifted(layout, layout.size("pp") // 2, replicas)


def matched(layout: Layout) -> Backups | None:
    """Any machine that no group joins with one's own; None when they cannot be shared out."""
    partner = match(_allowed(layout))
    return None if partner is None else _by_machine(layout, partner)


def next_machine(layout: Layout) -> Backups:
    """The neighbour in the list, whatever groups it shares."""
    count = layout.machines
    return _by_machine(layout, tuple((machine + 1) % count for machine in range(count)))


NEXT_MACHINE = "next machine"
RULES: tuple[tuple[str, Callable[[Layout], Backups | None]], ...] = (
    ("pp+PP/2, dp+DP/2", half_shift),
    ("pp+PP/2, dp+k", machine_shift),
    ("matching", matched),
)


def _loss(kind: str, groups: Iterable[int], targets: list[int]) -> Loss:
    """Groups of the same machines share their fate, and there are many of those."""
    fate: dict[int, bool] = {}
    lost = count = 0
    for group in groups:
        if group not in fate:
            fate[group] = any(targets[machine] & group for machine in members(group))
        lost += fate[group]
        count += 1
    return Loss(kind, lost, count)


def _allowed(layout: Layout) -> list[int]:
    conflicts = [1 << machine for machine in range(layout.machines)]
    for groups in layout.groups().values():
        for group in set(groups):
            for machine in members(group):
                conflicts[machine] |= group
    everyone = (1 << layout.machines) - 1
    return [everyone & ~conflict for conflict in conflicts]


def _by_machine(layout: Layout, partner: tuple[int, ...]) -> Backups:
    size = layout.ranks_per_machine
    return tuple(partner[rank // size] * size + rank % size for rank in range(layout.world_size))


def _machines(layout: Layout, ranks: Iterable[int]) -> int:
    machines = 0
    for rank in ranks:
        machines |= 1 << layout.machine_of(rank)
    return machines


def members(machines: int) -> list[int]:
    """The machines of a set, in order.

    Examples:
        >>> members(0b1010)
        [1, 3]
    """
    return [index for index, bit in enumerate(reversed(bin(machines)[2:])) if bit == "1"]
