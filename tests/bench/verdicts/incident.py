"""One invented incident: a fleet as it answers, and the truth, which no rule of brctl has seen."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from brctl.model.fault import FaultClass
from tests.bench.verdicts.fleet import Fleet


@dataclass(frozen=True, slots=True)
class Truth:
    """What really happened.

    Attributes:
        classes: Classes that are right; more than one where the field itself would not tell them
            apart. UNKNOWN is among them only where no answer of any node could tell.
        blamed: Nodes where it happened.
        broken: Those of them that are bad machines, which to evict is right.
        seen_at: Nodes where something came to light that is nobody's: a rank raised there. To say
            so is right and asked of nobody.
    """

    classes: frozenset[FaultClass]
    blamed: frozenset[str] = frozenset()
    broken: frozenset[str] = frozenset()
    seen_at: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Incident:
    family: str
    seed: int
    fleet: Fleet = field(repr=False)
    truth: Truth


Tell = Callable[[Random], tuple[Fleet, Truth]]


def machine(fault: FaultClass, *nodes: str) -> Truth:
    """Bad machines."""
    return Truth(frozenset({fault}), frozenset(nodes), frozenset(nodes))


def place(faults: Iterable[FaultClass], *nodes: str) -> Truth:
    """It happened on these nodes, and their machines are healthy."""
    return Truth(frozenset(faults), frozenset(nodes))


def nobody(*faults: FaultClass, seen_at: Iterable[str] = ()) -> Truth:
    """No node is to blame."""
    return Truth(frozenset(faults), seen_at=frozenset(seen_at))
