"""Give every machine one of the machines allowed to it, none twice. Pure.

Pairs first: if two unrelated machines die together, an exchange loses data half as often as a
longer cycle does. Who is left over is matched along augmenting paths.
"""

from collections.abc import Sequence


def match(allowed: Sequence[int]) -> tuple[int, ...] | None:
    """A partner for every machine; None when there is no such assignment.

    Args:
        allowed: For each machine the set of machines it may be given, one bit a machine; symmetric.
    """
    partner = _pairs(allowed)
    taken_by = {target: machine for machine, target in enumerate(partner) if target is not None}
    for machine, target in enumerate(partner):
        if target is None and not _augment(allowed, machine, taken_by):
            return None
    machine_target = {machine: target for target, machine in taken_by.items()}
    return tuple(machine_target[machine] for machine in range(len(allowed)))


def _pairs(allowed: Sequence[int]) -> list[int | None]:
    partner: list[int | None] = [None] * len(allowed)
    free = (1 << len(allowed)) - 1
    for machine, choices in enumerate(allowed):
        candidates = choices & free & ~(1 << machine)
        if partner[machine] is None and candidates:
            other = _lowest(candidates)
            partner[machine], partner[other] = other, machine
            free &= ~(1 << machine) & ~(1 << other)
    return partner


def _augment(allowed: Sequence[int], start: int, taken_by: dict[int, int]) -> bool:
    """Give `start` a machine, moving others along a shortest path; False if none can be had."""
    reached_from: dict[int, int] = {}
    unseen = (1 << len(allowed)) - 1
    queue = [start]
    for machine in queue:
        while choices := allowed[machine] & unseen:
            target = _lowest(choices)
            unseen &= ~(1 << target)
            reached_from[target] = machine
            if target not in taken_by:
                _turn(start, target, reached_from, taken_by)
                return True
            queue.append(taken_by[target])
    return False


def _turn(start: int, target: int, came: dict[int, int], taken_by: dict[int, int]) -> None:
    machine_target = {machine: own for own, machine in taken_by.items()}
    while True:
        machine = came[target]
        before = machine_target.get(machine)
        taken_by[target] = machine
        if machine == start or before is None:
            return
        target = before


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
