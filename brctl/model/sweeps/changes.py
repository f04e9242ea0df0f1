"""What a sweep means against the sweeps before it: new, worse, recovered, still there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from brctl.model.sweeps.sweep import Health

Key = tuple[str, str]
"""Node and check."""


@dataclass(frozen=True, slots=True)
class CheckProblem:
    """One check's bad news about one node; the worst when it has several."""

    node: str
    check: str
    health: Health
    detail: str

    @property
    def key(self) -> Key:
        return self.node, self.check


@dataclass(frozen=True, slots=True)
class Tracked:
    """One problem over time.

    Attributes:
        clean_looks: Looks in a row that found it gone; enough of them recover it.
        recovered_at: When it last recovered; None while it lasts.
        flaps: Comebacks soon after a recovery.
    """

    problem: CheckProblem
    since: datetime
    told_at: datetime
    clean_looks: int = 0
    recovered_at: datetime | None = None
    flaps: int = 0


@dataclass(frozen=True, slots=True)
class Mass:
    """One check that began to fail on many nodes in one sweep."""

    check: str
    health: Health
    nodes: tuple[str, ...]
    detail: str
    shared: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What a sweep means against what was known; `tracked` is what is known now."""

    new: tuple[CheckProblem, ...] = ()
    worse: tuple[CheckProblem, ...] = ()
    recovered: tuple[Tracked, ...] = ()
    still: tuple[Tracked, ...] = ()
    flapping: tuple[Tracked, ...] = ()
    mass: tuple[Mass, ...] = ()
    tracked: Mapping[Key, Tracked] = field(default_factory=dict)

    @property
    def quiet(self) -> bool:
        """Nothing anyone needs to be told."""
        reported = (self.new, self.worse, self.recovered, self.still, self.flapping, self.mass)
        return not any(reported)
