"""Policies beside which a site's own is measured, as rows: how soon they see, find and start.

These rows respond as the published figures say and are always right; only `site` decides by brctl's
own rules on what the nodes answer. Seconds to see and to find are the constants of the smallest
model that gives the paper's means (arXiv 2509.16293, Tables 3 and 6).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from brctl.model.watch.policy import WatchMode
from brctl.simulate.fleet import US, Fleet
from brctl.simulate.symptoms import Kind

Seconds = Mapping[Kind, float]


class StartKind(StrEnum):
    """How nodes come about for those that left."""

    REQUEUE = "requeue"
    RESCHEDULE = "reschedule"
    WARM = "warm"
    ORACLE = "oracle"


_IMPLICIT = (Kind.HANG, Kind.SLOW, Kind.NAN)
_AT_ONCE: Seconds = dict.fromkeys(Kind, 0.0)
_CHECKED_SEEN: Seconds = {
    Kind.EXPLICIT: 30.0, Kind.MACHINE: 10.0, Kind.HANG: 600.0, Kind.SLOW: 60.0, Kind.NAN: 60.0,
    Kind.MANUAL: 0.0,
}  # fmt: skip
_CHECKED_FOUND: Seconds = {
    Kind.EXPLICIT: 22.0, Kind.MACHINE: 0.0, Kind.HANG: 60.0, Kind.SLOW: 60.0, Kind.NAN: 4_218.0,
    Kind.MANUAL: 0.0,
}  # fmt: skip
_TIMEOUT_SEEN: Seconds = {
    Kind.EXPLICIT: 60.0, Kind.MACHINE: 60.0, Kind.HANG: 1_800.0, Kind.SLOW: 1_800.0,
    Kind.NAN: 60.0, Kind.MANUAL: 0.0,
}  # fmt: skip
_HEARTBEATS_FOUND: Seconds = {**_CHECKED_FOUND, Kind.EXPLICIT: 600.0, Kind.MACHINE: 600.0}
"""MegaScale: self-checks name the machine in less than ten minutes."""
_STRESS_FOUND: Seconds = {
    Kind.EXPLICIT: 518.0, Kind.MACHINE: 360.0, Kind.HANG: 1_800.0, Kind.SLOW: 1_800.0,
    Kind.NAN: 7_200.0, Kind.MANUAL: 0.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SimulatedPolicy:
    """One way to bring a job back.

    Attributes:
        seen_s: From a fault to its detection.
        found_s: From there to knowing what to replace.
        interval_s: Time between checkpoints; 0 saves every step.
        write_s: How long a save blocks.
        near: The checkpoint is loaded from memory or a local disk, not from a remote store.
        by_hand: What only people find; that takes the fleet's `people.mend` on average.
        one_node_s: Start and load where one machine is replaced, and no group; 0 for the usual.
        first: The playbook that is run first whatever the tree says; "" for the tree's.
        watches: The most that brctl's watcher may do; None where people look, as `site` does.
        breaker_percent: Of the nodes, its breaker lets through in a day; None for its policy's.
        decides: It asks brctl's own rules, and may be wrong.
        standbys: Instead of the fleet's; None for those.
        most_nodes: What the guard `blast_radius` lets through instead of its lines; None for those.
    """

    name: str
    title: str
    start: StartKind
    seen_s: Seconds
    found_s: Seconds
    interval_s: float = 0.0
    write_s: float = 0.0
    near: bool = True
    by_hand: tuple[Kind, ...] = ()
    one_node_s: float = 0.0
    first: str = ""
    watches: WatchMode | None = None
    breaker_percent: float | None = None
    decides: bool = False
    standbys: int | None = None
    most_nodes: int | None = None

    def pool(self, fleet: Fleet) -> int:
        """Standbys it keeps."""
        if self.start is not StartKind.WARM:
            return 0
        return fleet.pool if self.standbys is None else self.standbys

    def interval_us(self, fleet: Fleet) -> int:
        """Work between two saves."""
        return round((self.interval_s or fleet.step_s) * US)


_REQUEUE = SimulatedPolicy(
    "requeue", "stop, queue, all nodes anew, checkpoint of 30 min, timeout of 30 min",
    StartKind.REQUEUE, _TIMEOUT_SEEN, _STRESS_FOUND, interval_s=1_800.0, near=False,
)  # fmt: skip

_SITE = SimulatedPolicy(
    "site", "brctl's own rules, playbooks and guards on what the nodes answer",
    StartKind.WARM, _AT_ONCE, _AT_ONCE, decides=True,
)  # fmt: skip

POLICIES: Mapping[str, SimulatedPolicy] = {
    row.name: row
    for row in (
        _REQUEUE,
        replace(_REQUEUE, name="requeue-10m", title="the same, timeout of 10 min",
                seen_s={**_TIMEOUT_SEEN, Kind.HANG: 600.0, Kind.SLOW: 600.0}),
        SimulatedPolicy("reschedule", "checks, new nodes for those that left, every step saved",
               StartKind.RESCHEDULE, _CHECKED_SEEN, _CHECKED_FOUND),
        SimulatedPolicy("standby", "checks, warm standbys, every step saved",
               StartKind.WARM, _CHECKED_SEEN, _CHECKED_FOUND),
        SimulatedPolicy("stress-tests", "checks see; selective stress tests find; warm standbys",
               StartKind.WARM, _CHECKED_SEEN, _STRESS_FOUND),
        SimulatedPolicy("megascale", "heartbeats, self-checks, people where nothing fails aloud",
               StartKind.RESCHEDULE, _CHECKED_SEEN, _HEARTBEATS_FOUND, interval_s=900.0,
               by_hand=_IMPLICIT),
        SimulatedPolicy("meta", "checks every 5 min, hourly checkpoints, queued anew",
               StartKind.REQUEUE, dict.fromkeys(Kind, 150.0), _AT_ONCE, interval_s=3_600.0,
               near=False, by_hand=_IMPLICIT),
        SimulatedPolicy("trainmover", "20 s for one bad machine, else warm standbys",
               StartKind.WARM, _CHECKED_SEEN, _CHECKED_FOUND, one_node_s=20.0),
        _SITE,
        *(replace(_SITE, name=f"watch-{mode}", title=f"site, with brctl's watcher that may {mode}",
                  watches=mode) for mode in WatchMode),
        replace(_SITE, name="evict-first", title="site, but whom a verdict names is swapped first",
                first="swap-and-resume"),
        replace(_SITE, name="reattempt-first", title="site, but a restart in place comes first",
                first="restart-in-place"),
        replace(_SITE, name="bisect-first", title="site, but checks of idle nodes come first",
                first="stop-time-checks"),
        SimulatedPolicy("oracle", "sees and finds at once, ready nodes without end",
               StartKind.ORACLE, _AT_ONCE, _AT_ONCE),
    )
}  # fmt: skip
"""By the word `--policy` takes."""

USUAL = ("requeue", "requeue-10m", "reschedule", "standby", "site", "oracle")
"""Those that are compared when none is named."""
