"""What the verdicts of one incident are worth, and many of them together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from brctl.model.fault import Action, FaultClass
from brctl.model.verdict import Confidence, Verdict
from tests.bench.verdicts.incident import Truth

_EVICTS = (Action.SWAP, Action.EVICT_GROUP, Action.CORDON)
_NO_CLAIM = (FaultClass.UNKNOWN,)


class Happened(Protocol):
    """An incident whose truth is known, invented or live."""

    @property
    def family(self) -> str: ...

    @property
    def truth(self) -> Truth: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """One incident beside what was concluded."""

    incident: Happened
    verdicts: tuple[Verdict, ...]

    @property
    def main(self) -> Verdict:
        return self.verdicts[0]

    @property
    def class_right(self) -> bool:
        return self.main.fault in self.incident.truth.classes

    @property
    def abstained(self) -> bool:
        return self.main.fault is FaultClass.UNKNOWN

    @property
    def named(self) -> set[str]:
        return {node for verdict in self.verdicts for node in verdict.nodes}

    @property
    def placed(self) -> set[str]:
        """Nodes where it is said to have come to light, and which nobody blames."""
        return {place.node for verdict in self.verdicts for place in verdict.places}

    @property
    def culprit_right(self) -> bool:
        """Those it happened on are named; as a mere place, where none of them is broken."""
        truth = self.incident.truth
        told = self.named if truth.broken else self.named | self.placed
        return told == truth.blamed

    @property
    def misplaced(self) -> set[str]:
        truth = self.incident.truth
        return self.placed - truth.blamed - truth.seen_at

    @property
    def move_evicts(self) -> set[str]:
        """Healthy machines that the proposed moves would take out."""
        named = {n for v in self.verdicts if v.action in _EVICTS for n in v.nodes}
        return named - self.incident.truth.broken

    @property
    def stops_in_vain(self) -> bool:
        """The proposed move stops a job that trains although nothing is wrong."""
        return (
            FaultClass.NO_FAULT in self.incident.truth.classes
            and self.main.stalled is False
            and bool(self.main.playbook)
        )

    def innocents(self, *, high: bool) -> set[str]:
        return {
            node
            for verdict in self.verdicts
            if (verdict.confidence is Confidence.HIGH) is high
            for node in verdict.nodes
        } - self.incident.truth.blamed


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    right: int
    of: int

    def __str__(self) -> str:
        return f"{self.right}/{self.of} = {self.right / self.of:.3f}" if self.of else "0/0"


def share(outcomes: Sequence[Outcome], right: Sequence[Outcome]) -> Share:
    return Share(len(right), len(outcomes))


def table(outcomes: Sequence[Outcome]) -> dict[str, Share | float]:
    """The figures of one half."""
    guilty = [o for o in outcomes if o.incident.truth.blamed]
    high = [o for o in outcomes if o.main.confidence is Confidence.HIGH]
    calm = [o for o in high if o.main.fault is FaultClass.NO_FAULT]
    faults = [o for o in high if o.main.fault is not FaultClass.NO_FAULT]
    return {
        "class right": share(outcomes, [o for o in outcomes if o.class_right]),
        "culprit right": share(guilty, [o for o in guilty if o.culprit_right]),
        "innocents named HIGH": share(outcomes, [o for o in outcomes if o.innocents(high=True)]),
        "innocents named below": share(outcomes, [o for o in outcomes if o.innocents(high=False)]),
        "wrong place": share(outcomes, [o for o in outcomes if o.misplaced]),
        "healthy eviction": share(outcomes, [o for o in outcomes if o.move_evicts]),
        "stopped in vain": share(outcomes, [o for o in outcomes if o.stops_in_vain]),
        "no-fault HIGH right": share(calm, [o for o in calm if o.class_right]),
        "HIGH faults right": share(faults, [o for o in faults if o.class_right]),
        "abstained": share(outcomes, [o for o in outcomes if o.abstained]),
        "Brier": brier(outcomes),
    }


def claims(outcomes: Sequence[Outcome]) -> list[tuple[float, bool]]:
    """Every class that was claimed first, with its probability and whether it was right."""
    return [(o.main.probability, o.class_right) for o in outcomes if o.main.fault not in _NO_CLAIM]


def brier(outcomes: Sequence[Outcome]) -> float:
    pairs = claims(outcomes)
    return round(sum((p - right) ** 2 for p, right in pairs) / max(1, len(pairs)), 4)


def deciles(outcomes: Sequence[Outcome]) -> list[tuple[str, int, float, float]]:
    """Stated and observed: decile, how many claims, their mean probability, how many were right."""
    rows = []
    for tenth in range(10):
        inside = [(p, r) for p, r in claims(outcomes) if min(9, int(p * 10)) == tenth]
        if inside:
            mean = sum(p for p, _ in inside) / len(inside)
            right = sum(r for _, r in inside) / len(inside)
            rows.append((f"{tenth / 10:.1f}-{(tenth + 1) / 10:.1f}", len(inside), mean, right))
    return rows
