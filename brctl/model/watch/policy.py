"""What a watcher may do by itself: a mode for each rule and fault class, and the limits of all."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil

from brctl.model.fault import FaultClass


class WatchMode(StrEnum):
    """How far a watcher goes, the least first."""

    OBSERVE = "observe"
    """Write what would have been done."""
    PROPOSE = "propose"
    """Page with the exact command."""
    ACT = "act"
    """Start `fix`."""

    @property
    def rank(self) -> int:
        return list(WatchMode).index(self)


def strictest(*modes: WatchMode) -> WatchMode:
    """The one that does least.

    Examples:
        >>> strictest(WatchMode.ACT, WatchMode.PROPOSE).value
        'propose'
    """
    return min(modes, key=lambda mode: mode.rank)


@dataclass(frozen=True, slots=True)
class Breaker:
    """How many distinct nodes may be acted on within a time; more opens the breaker."""

    within_s: float
    share: float
    least: int

    def limit(self, known: int) -> int:
        """Nodes allowed in a fleet of so many, reachable or not; none where nobody is known.

        Examples:
            >>> Breaker(300, 0.02, 1).limit(128)
            3
        """
        # Rounded first: 0.07 x 100 is a little more than 7 to a computer.
        return max(self.least, ceil(round(self.share * known, 9))) if known else 0


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """The gates' figures; own unless a source stands beside one.

    Attributes:
        breakers: Precedent: NVSentinel's 5 minute window, Google's 10 % of a pool in an hour.
        attempts_a_day: Actions on one node for one class of fault in 24 hours.
        restarts: Actions on one job within `restarts_within_s` without `restart_steps` new steps.
        spares_kept: Standbys that stay in the pool whatever is suspected.
        quiet_s: A node that a person gave back, or whose verdict one dismissed, is left alone.
        start_up_s: From the start of the watcher, or a new version or policy, it only observes.
    """

    breakers: tuple[Breaker, ...] = (Breaker(300.0, 0.02, 1), Breaker(86_400.0, 0.05, 2))
    attempts_a_day: int = 2
    restarts: int = 3
    restarts_within_s: float = 1800.0
    restart_steps: int = 10
    spares_kept: int = 1
    quiet_s: float = 86_400.0
    start_up_s: float = 600.0


@dataclass(frozen=True, slots=True)
class WatchPolicy:
    """What a site allows.

    Attributes:
        mode: What holds where neither the rule nor the class is named.
        rules: By name of a rule.
        classes: By class of the verdict's fault.
        freezes: Calendars in whose spans nothing is changed.
        origin: The file it came from; "" for the built-in one.
        problem: Why the file could not be read, and so nothing but observing is allowed.
    """

    mode: WatchMode = WatchMode.OBSERVE
    rules: Mapping[str, WatchMode] = field(default_factory=dict)
    classes: Mapping[FaultClass, WatchMode] = field(default_factory=dict)
    limits: WatchLimits = field(default_factory=WatchLimits)
    freezes: tuple[str, ...] = ()
    origin: str = ""
    problem: str = ""

    @property
    def most(self) -> WatchMode:
        """The most that it allows anywhere."""
        modes = (self.mode, *self.rules.values(), *self.classes.values())
        return max(modes, key=lambda mode: mode.rank)

    def mode_of(self, rule: str, fault: FaultClass) -> WatchMode:
        """The strictest of what is said of the rule and of the class; else the default."""
        if self.problem:
            return WatchMode.OBSERVE
        named = [
            mode for mode in (self.rules.get(rule), self.classes.get(fault)) if mode is not None
        ]
        return strictest(*named) if named else self.mode
