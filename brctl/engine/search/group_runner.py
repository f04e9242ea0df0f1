"""The seam to whatever runs collectives on groups of nodes: one order a round, one answer back."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from brctl.localise.problem import GroupResult

OPERATIONS = ("all_reduce", "all_gather", "all_to_all")


@dataclass(frozen=True, slots=True)
class RoundOrder:
    """One round: disjoint groups of unit names that run at the same time.

    Attributes:
        deadline_s: After this the round is over, whatever is missing.
    """

    number: int
    op: str
    size_bytes: int
    reps: int
    groups: tuple[tuple[str, ...], ...]
    deadline_s: float


@dataclass(frozen=True, slots=True)
class RoundMeasurement:
    """What came back, in the order of the groups.

    Attributes:
        problem: Why the round was not measured, and no further one can be; "" when it was.
        notes: Sentences about single groups, for people.
    """

    results: tuple[GroupResult, ...]
    problem: str = ""
    notes: tuple[str, ...] = ()


class GroupRunner(Protocol):
    """Runs rounds. Never raises for what nodes or programs do; nothing unread becomes a pass."""

    @property
    def name(self) -> str:
        """How documents call it: torch, nccl-tests, exec."""
        ...

    async def run(self, order: RoundOrder) -> RoundMeasurement:
        """Run one round within its deadline."""
        ...

    async def close(self) -> None:
        """End everything this runner started."""
        ...


def nothing_measured(order: RoundOrder, problem: str) -> RoundMeasurement:
    """A round of which nothing is known."""
    return RoundMeasurement(tuple(GroupResult(order.reps, None) for _ in order.groups), problem)


def read_results(rows: Sequence[object], reps: int) -> tuple[tuple[GroupResult, ...], list[str]]:
    """Results as a foreign program wrote them; a row that makes no sense is not measured.

    `failed` null means that the group did not answer: its repetitions count as failed.
    """
    results: list[GroupResult] = []
    notes: list[str] = []
    for number, row in enumerate(rows, 1):
        result, why = _read_row(row, reps)
        results.append(result)
        if why:
            notes.append(f"group {number}: {why}; not measured")
    return tuple(results), notes


def _read_row(row: object, reps: int) -> tuple[GroupResult, str]:
    nothing = GroupResult(reps, None)
    if not isinstance(row, Mapping):
        return nothing, "not an object"
    done, failed, speed = row.get("reps", reps), row.get("failed", ...), row.get("busbw_gb_per_s")
    if not _is_count(done) or not 1 <= done <= reps:
        return nothing, "reps is not a number from 1 to what was asked"
    busbw = _speed(speed)
    if speed is not None and busbw is None:
        return nothing, "busbw_gb_per_s is not a positive number"
    if failed is None:
        return GroupResult(reps, reps, None, silent=True), ""
    if not _is_count(failed) or not 0 <= failed <= done:
        return nothing, "failed is not a number from 0 to reps"
    return GroupResult(done, failed, busbw), ""


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _speed(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = float(value) if abs(value) < 1e300 else math.inf
    return number if math.isfinite(number) and number > 0 else None
