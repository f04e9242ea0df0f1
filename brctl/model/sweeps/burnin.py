"""A burn-in: heavy checks in rounds on nodes that run no job, and how each node came out."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from brctl.model.evidence import Evidence, Gap
from brctl.model.fault import FaultClass


class BurninState(StrEnum):
    """How far a node, or the whole burn-in, is."""

    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    STOPPED = "stopped"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class Rating:
    """One rate a device reached, and its place in the fleet.

    Attributes:
        percentile: Share of equal devices that were not faster, 0 to 100; None below three devices.
    """

    name: str
    subject: str
    value: float
    unit: str
    percentile: float | None = None


@dataclass(frozen=True, slots=True)
class NodeBurnin:
    """One node in a burn-in.

    Attributes:
        rounds: Rounds it answered.
        repetitions: Of the one computation that was asked for, whose result is known.
        reason: Why it failed, stopped or is unfinished; "" otherwise.
    """

    node: str
    state: BurninState
    rounds: int = 0
    reason: str = ""
    evidence: tuple[Evidence, ...] = ()
    gaps: tuple[Gap, ...] = ()
    ratings: tuple[Rating, ...] = ()
    repetitions: int = 0

    @property
    def computed_wrongly(self) -> bool:
        """Whether it failed for its results, not for its end, its pace or what it logs."""
        return self.state is BurninState.FAILED and any(
            item.fault is FaultClass.SILENT_CORRUPTION for item in self.evidence
        )


@dataclass(frozen=True, slots=True)
class Burnin:
    """All nodes of one burn-in.

    Attributes:
        pid: The process that carries it out, on the controller.
        duration_s: How long it was meant to last.
        seconds: How long it has lasted.
    """

    id: str
    level: int
    checks: tuple[str, ...]
    started_at: datetime
    duration_s: float
    seconds: float
    pid: int
    nodes: tuple[NodeBurnin, ...]

    @property
    def state(self) -> BurninState:
        """Of all nodes together; one that failed decides, then one that is not done."""
        order = (
            BurninState.FAILED,
            BurninState.RUNNING,
            BurninState.UNFINISHED,
            BurninState.STOPPED,
        )
        states = {node.state for node in self.nodes}
        return next((state for state in order if state in states), BurninState.PASSED)
