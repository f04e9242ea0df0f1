"""The pool of standbys: who is in it, how each was last found, how many are wanted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path

from brctl.engine.incidents.verdict_store import load_all
from brctl.model.errors import UsageError
from brctl.model.inventory import Inventory, NodeRole
from brctl.model.sweeps.sweep import Health
from brctl.model.units import parse_rfc3339
from brctl.playbook.placement.standbys import COLD_S, PARKED_S, WARM_S
from brctl.playbook.spares import PAPER_DAILY_RATE

HISTORY_DAYS = 30.0
ENOUGH_DAYS = 7.0
"""A rate from less history than this is noise; the paper's is used and said so."""

PARKED_FIELDS = frozenset({"parked_for", "parked_at", "parked_ranks", "beside", "lease_s"})
"""What waits on a node; one of them means nothing without the others."""


@dataclass(frozen=True, slots=True)
class Standby:
    """What is known of one standby.

    Attributes:
        warmed_at: When its environment was last loaded; None for never.
        tested_at: When its self-checks last ran.
        health: What they said; None for never tested.
        parked_for: The job for whose ranks processes were parked here; None for no job.
        parked_at: When they were last known to wait.
        parked_ranks: How many of them.
        beside: They were parked on a node of the job, beside its ranks, for its next start.
        lease_s: They end by themselves when nobody asks for them so long.
    """

    node: str
    warmed_at: str | None = None
    warm_seconds: float | None = None
    tested_at: str | None = None
    health: str | None = None
    note: str = ""
    parked_for: str | None = None
    parked_at: str | None = None
    parked_ranks: int = 0
    beside: bool = False
    lease_s: float = 0.0

    def with_changes(self, before: "Standby", after: "Standby") -> "Standby":
        """This row with what somebody changed in an earlier state of it."""
        changed = {
            f.name for f in fields(self) if getattr(before, f.name) != getattr(after, f.name)
        }
        if changed & PARKED_FIELDS:
            changed |= PARKED_FIELDS
        return replace(self, **{name: getattr(after, name) for name in changed})

    def unparked(self, note: str = "") -> "Standby":
        """The same node with nothing parked on it."""
        return replace(
            self, parked_for=None, parked_at=None, parked_ranks=0, beside=False, lease_s=0.0,
            note=note,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pool:
    """The pool's file: nodes added to and removed from what the inventory says, and their past."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    known: Mapping[str, Standby] = field(default_factory=dict)

    def members(self, inventory: Inventory) -> tuple[str, ...]:
        """Standbys in the order of the inventory, then those added."""
        named = [*inventory.names(NodeRole.STANDBY), *self.added]
        return tuple(n for n in dict.fromkeys(named) if n not in self.removed)

    def best_first(self, inventory: Inventory, job: str = "") -> tuple[str, ...]:
        """Members that passed their self-checks in front, of those the parked, then the warm."""

        def rank(node: str) -> tuple[bool, bool, bool]:
            known = self.of(node)
            parked = bool(job) and known.parked_for == job
            return (known.health != Health.OK, not parked, known.warmed_at is None)

        return tuple(sorted(self.members(inventory), key=rank))

    def start_s(self, inventory: Inventory, job: str, now: datetime) -> dict[str, float]:
        """How much longer a start takes with each member that passed its self-checks."""
        passed = [
            known for n in self.members(inventory) if (known := self.of(n)).health == Health.OK
        ]
        return {known.node: _start_s(known, job, now) for known in passed}

    def parked(self) -> tuple[str, ...]:
        """Nodes where processes wait, of the pool or not."""
        return tuple(node for node, known in self.known.items() if known.parked_for)

    def with_known(self, rows: Iterable[Standby]) -> "Pool":
        """The pool with what is known of some nodes replaced."""
        return replace(self, known={**self.known, **{row.node: row for row in rows}})

    def with_changes(self, before: "Pool", after: "Pool") -> "Pool":
        """This pool with what somebody did to an earlier state of it, and with nothing undone."""
        joined = [node for node in after.added if node not in before.added]
        left = [node for node in after.removed if node not in before.removed]
        added = [node for node in self.added if node in after.added or node not in before.added]
        removed = [n for n in self.removed if n in after.removed or n not in before.removed]
        pool = Pool(
            tuple(dict.fromkeys([n for n in added if n not in left] + joined)),
            tuple(dict.fromkeys([n for n in removed if n not in joined] + left)),
            self.known,
        )
        return pool.with_known(
            self.of(node).with_changes(before.of(node), row) for node, row in after.known.items()
        )

    def of(self, node: str) -> Standby:
        """What is known of a node."""
        return self.known.get(node, Standby(node))


def add(pool: Pool, inventory: Inventory, nodes: Sequence[str], busy: Mapping[str, str]) -> Pool:
    """Put nodes into the pool; one that carries a job cannot wait for another."""
    inventory.require(nodes)
    for node in nodes:
        if node in busy:
            raise UsageError(f"{node} carries job {busy[node]}; it cannot be a standby")
    added = tuple(dict.fromkeys([*pool.added, *nodes]))
    return replace(pool, added=added, removed=tuple(n for n in pool.removed if n not in nodes))


def remove(pool: Pool, nodes: Sequence[str]) -> Pool:
    """Take nodes out of the pool; they stay in the inventory."""
    removed = tuple(dict.fromkeys([*pool.removed, *nodes]))
    return replace(pool, added=tuple(n for n in pool.added if n not in nodes), removed=removed)


@dataclass(frozen=True, slots=True)
class Rate:
    """Failures per node and day, and where the number comes from."""

    daily: float
    source: str


def daily_rate(state_dir: Path, machines: int, now: datetime) -> Rate:
    """From the site's own verdicts that were acted on, once there is history enough."""
    acted = [s.verdict for s in load_all(state_dir) if s.state.value in ("acted-on", "confirmed")]
    times = [v.decided_at for v in acted]
    days = max(((now - t).total_seconds() / 86400 for t in times), default=0.0)
    if days < ENOUGH_DAYS:
        return Rate(PAPER_DAILY_RATE, f"the paper's; only {days:.1f} days of own history")
    days = min(days, HISTORY_DAYS)
    recent = [v for v in acted if (now - v.decided_at).total_seconds() <= days * 86400]
    losses = sum(len(v.nodes) for v in recent)
    return Rate(losses / (machines * days), f"{losses} nodes lost in {days:.0f} days")


def _start_s(known: Standby, job: str, now: datetime) -> float:
    if known.parked_for == job and still_parked(known, now):
        return PARKED_S
    return COLD_S if known.warmed_at is None else WARM_S


def age_s(moment: str | None, now: datetime) -> float | None:
    """Seconds since a moment of the pool's file."""
    return None if moment is None else (now - parse_rfc3339(moment)).total_seconds()


def still_parked(known: Standby, now: datetime) -> bool:
    """Whether processes may still wait: they end by themselves when their lease is over."""
    age = age_s(known.parked_at, now)
    if not known.parked_for or age is None:
        return False
    return known.lease_s == 0 or age <= known.lease_s
