"""One sweep: checks times nodes, once, with what each node's answers mean."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from brctl.model.evidence import Evidence, Gap
from brctl.model.exit_codes import ExitCode
from brctl.model.sweeps.report import NodeReport


class Health(StrEnum):
    """What we believe of one node. UNKNOWN is its own answer, never folded into OK."""

    OK = "ok"
    WARNING = "warn"
    CRITICAL = "crit"
    UNKNOWN = "unknown"


EXIT_OF: Mapping[Health, ExitCode] = {
    Health.OK: ExitCode.OK,
    Health.WARNING: ExitCode.WARNING,
    Health.CRITICAL: ExitCode.CRITICAL,
    Health.UNKNOWN: ExitCode.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """One node in one sweep.

    Attributes:
        report: What it answered.
        evidence: The answers, judged; clears included.
        gaps: What it could not answer.
    """

    node: str
    health: Health
    report: NodeReport
    evidence: tuple[Evidence, ...]
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    """All nodes of one sweep, every node that was asked included.

    Attributes:
        level: 1 to 4, as `dcgmi diag -r`.
        seconds: Wall time from the first connect to the last answer.
    """

    id: str
    level: int
    checks: tuple[str, ...]
    started_at: datetime
    seconds: float
    nodes: tuple[NodeHealth, ...]

    def of(self, health: Health) -> tuple[NodeHealth, ...]:
        """The nodes in one state."""
        return tuple(node for node in self.nodes if node.health is health)
