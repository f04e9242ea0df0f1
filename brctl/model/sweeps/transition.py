"""What changed on one node in one sweep."""

from dataclasses import dataclass
from datetime import datetime

from brctl.model.sweeps.sweep import Health


@dataclass(frozen=True, slots=True)
class Transition:
    """One check's news about a node; `what` is new, worse, recovered or flapping."""

    at: datetime
    node: str
    check: str
    health: Health
    what: str
    detail: str
