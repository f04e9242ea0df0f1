"""A fleet to simulate: its size, what fails in it, and how long everything takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from brctl.model.simulation import SimulatedFleet
from brctl.playbook.spares import PAPER_DAILY_RATE, losses_at_once

US = 1_000_000
"""Microseconds of a second: simulated moments are whole numbers of them."""


@dataclass(frozen=True, slots=True)
class StartTimes:
    """Seconds from a decision to a running job, by how its nodes come about.

    Attributes:
        unexplained_s: Added to every incident where a source's own means do not give its total.
    """

    requeue_s: float
    reschedule_s: float
    warm_s: float
    oracle_s: float
    hot_update_s: float
    load_remote_s: float = 300.0
    load_near_s: float = 30.0
    unexplained_s: float = 0.0


@dataclass(frozen=True, slots=True)
class PeopleTimes:
    """How long people take: to approve, and to mend by hand what no playbook mends."""

    approval_s: float = 0.0
    mend_s: float = 1_800.0


@dataclass(frozen=True, slots=True)
class Watch:
    """How the site looks: every so often, and after how long a job without steps hangs."""

    every_s: float = 30.0
    stall_after_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Signals:
    """How well faults show; all assumed where a fleet says nothing.

    Attributes:
        delay_s: Mean time from a fault to its first sign.
        unanswered: Chance that the culprit's checks of GPUs end at their deadline.
        noise: Chance that a sound node does not answer a look.
        traced: Share of a bad GPU's CUDA errors that leave an Xid and a counter.
    """

    delay_s: float = 0.0
    unanswered: float = 0.02
    noise: float = 0.0
    traced: float = 0.6


@dataclass(frozen=True, slots=True)
class Fleet:
    """One job on its nodes.

    Attributes:
        origin: File it was read from.
        group_nodes: Nodes of the parallel group that is evicted whole.
        counts: What the rate counts; rates of different definitions differ by 3.5 times.
        shares: How often each symptom comes, summing to 1.
        bad_share: Nodes that fail `bad_times` as often as the others ("lemons").
        burst_share: Node faults that take `burst_nodes` at once.
        restart_fails: Chance that a start fails by itself and is made again.
        standbys: Ready nodes; None for the 99th percentile of a day's losses.
        refill_s: Until a standby that was taken is replaced.
    """

    name: str
    title: str
    origin: str
    nodes: int
    days: float
    per_1000_node_days: float
    counts: str
    shares: Mapping[str, float]
    times: StartTimes
    gpus_per_node: int = 8
    group_nodes: int = 8
    step_s: float = 10.0
    bad_share: float = 0.0
    bad_times: float = 1.0
    burst_nodes: int = 0
    burst_share: float = 0.0
    restart_fails: float = 0.0
    standbys: int | None = None
    refill_s: float = 86_400.0
    people: PeopleTimes = field(default_factory=PeopleTimes)
    watch: Watch = field(default_factory=Watch)
    signals: Signals = field(default_factory=Signals)

    @property
    def pool(self) -> int:
        """Standbys that are kept."""
        if self.standbys is not None:
            return self.standbys
        return losses_at_once(self.nodes, PAPER_DAILY_RATE)

    @property
    def stops_per_day(self) -> float:
        return self.nodes * self.per_1000_node_days / 1_000

    def facts(self) -> SimulatedFleet:
        """What a page says of it."""
        return SimulatedFleet(
            self.name, self.title, self.nodes, self.gpus_per_node, self.days,
            self.per_1000_node_days, self.counts, self.origin,
        )  # fmt: skip
