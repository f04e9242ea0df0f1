"""Replays of 1,024 simulated machines of which one is bad: rounds until it is named, by method.

A group with the bad machine gives other bits with probability p, another one never. Ours is what
the product runs (`run_dual_phase`), the paper's is one run of each phase, halving replays both
halves of what is suspected until one fails, with machines that passed as company.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from brctl.engine.search.bisect import BisectOptions
from brctl.engine.search.group_runner import RoundMeasurement, RoundOrder
from brctl.engine.search.replay_phases import run_dual_phase
from brctl.localise.repetitions import repetitions_for
from brctl.localise.replay import sharpest_phases
from brctl.model.localisation import FaultKind, GroupResult

MACHINES, SPAN, MISS = 1024, 8, 0.001
NOON = datetime(2026, 7, 5, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class NamedIn:
    """One incident: whom a method named, after so many rounds one behind the other."""

    named: frozenset[int]
    rounds: int


@dataclass(frozen=True, slots=True)
class Row:
    """One method at one probability."""

    method: str
    p: float
    draws: int
    right: int
    innocents: int
    rounds: float

    def line(self) -> str:
        share = 100 * self.right / self.draws
        return (
            f"{self.method:10} p={self.p:<5g} right {share:5.1f} %, innocents {self.innocents},"
            f" rounds {self.rounds:.1f}   ({self.draws} draws)"
        )


class _Groups:
    """Replays one after the other of a fleet with one bad machine; see `GroupRunner`."""

    name = "simulated"

    def __init__(self, bad: int, p: float, random: Random) -> None:
        self._bad, self._p, self._random = str(bad), p, random
        self.rounds = 0

    async def run(self, order: RoundOrder) -> RoundMeasurement:
        self.rounds += 1
        struck = self._random.random() < self._p
        wrong = [int(struck and self._bad in group) for group in order.groups]
        return RoundMeasurement(tuple(GroupResult(1, each, differs=each) for each in wrong))

    async def close(self) -> None:
        """Nothing runs."""


def dual_phase(bad: int, p: float, random: Random, repetitions: int) -> NamedIn:
    """The product's own search."""
    groups = _Groups(bad, p, random)
    found = asyncio.run(
        run_dual_phase(
            tuple(map(str, range(MACHINES))), sharpest_phases(MACHINES, SPAN),
            BisectOptions("replay", 0, 1e9, 1.0), groups, lambda: NOON, lambda report: None,
            repetitions,
        )
    )  # fmt: skip
    convicted = [f for f in found.conclusion.findings if f.kind is FaultKind.NODE]
    return NamedIn(frozenset(int(n) for f in convicted for n in f.members), groups.rounds)


def halving(bad: int, p: float, random: Random, repetitions: int) -> NamedIn:
    """Both halves at once, again until one of them fails; gives up where none does."""
    suspects: Sequence[int] = range(MACHINES)
    rounds = 0
    while len(suspects) > 1:
        half = len(suspects) // 2
        tries = next((n for n in range(1, repetitions + 1) if random.random() < p), None)
        rounds += tries or repetitions
        if tries is None:
            return NamedIn(frozenset(), rounds)
        suspects = suspects[:half] if bad in suspects[:half] else suspects[half:]
    return NamedIn(frozenset(suspects), rounds)


def ours(bad: int, p: float, random: Random) -> NamedIn:
    return dual_phase(bad, p, random, repetitions_for(p, MISS / 2))


def paper(bad: int, p: float, random: Random) -> NamedIn:
    return dual_phase(bad, p, random, 1)


def halved(bad: int, p: float, random: Random) -> NamedIn:
    return halving(bad, p, random, repetitions_for(p, MISS / 10))


METHODS: dict[str, Callable[[int, float, Random], NamedIn]] = {
    "brctl": ours,
    "paper": paper,
    "halving": halved,
}
"""All but the paper's repeat for one missed fault in a thousand over all of their stages."""


def rows(probabilities: Sequence[float], draws: int) -> Iterator[Row]:
    """Every method on the same incidents."""
    for p in probabilities:
        for name, search in METHODS.items():
            random = Random(f"{name} {p}")
            bad = [Random(f"bad {p} {n}").randrange(MACHINES) for n in range(draws)]
            found = [search(machine, p, random) for machine in bad]
            pairs = list(zip(bad, found, strict=True))
            yield Row(
                name, p, draws,
                sum(each.named == {machine} for machine, each in pairs),
                sum(len(each.named - {machine}) for machine, each in pairs),
                sum(each.rounds for each in found) / draws,
            )  # fmt: skip
