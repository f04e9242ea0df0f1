"""The pool of standbys: who is in it, how each was last found, how many are wanted."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path

from brctl.engine.incidents.verdict_store import load_all
from brctl.library.durable_files import private_dir, set_aside, write_atomic
from brctl.model.errors import ConfigError, UsageError
from brctl.model.inventory import Inventory, NodeRole
from brctl.model.sweeps.sweep import Health
from brctl.model.units import parse_rfc3339
from brctl.playbook.spares import PAPER_DAILY_RATE

HISTORY_DAYS = 30.0
ENOUGH_DAYS = 7.0
"""A rate from less history than this is noise; the paper's is used and said so."""


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

    def parked(self) -> tuple[str, ...]:
        """Nodes where processes wait, of the pool or not."""
        return tuple(node for node, known in self.known.items() if known.parked_for)

    def with_known(self, rows: Iterable[Standby]) -> "Pool":
        """The pool with what is known of some nodes replaced."""
        return replace(self, known={**self.known, **{row.node: row for row in rows}})

    def of(self, node: str) -> Standby:
        """What is known of a node."""
        return self.known.get(node, Standby(node))


def _path(state_dir: Path, context: str) -> Path:
    return state_dir / "static" / f"{context}.standbys.json"


def load_pool(state_dir: Path, context: str) -> Pool:
    """The pool of a context; a damaged file is an error, never an empty pool."""
    path = _path(state_dir, context)
    if not path.exists():
        return Pool()
    try:
        data = json.loads(path.read_bytes())
        known = {row["node"]: Standby(**row) for row in data["known"]}
        return Pool(tuple(data["added"]), tuple(data["removed"]), known)
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise ConfigError(f"{path}: damaged: {exc}") from exc


def usable_pool(state_dir: Path, context: str) -> Pool:
    """The same for whoever acts on it: a damaged file is set aside, and the inventory's pool holds.

    Nobody in it counts as tested then, and admission looks at each; whom people had removed is a
    member again, which is said.
    """
    try:
        return load_pool(state_dir, context)
    except ConfigError:
        set_aside(_path(state_dir, context))
        logging.getLogger(__name__).warning(
            "warning: the standbys of %s are those of the inventory again, untested; look:"
            " brctl standby list", context,
        )  # fmt: skip
        return Pool()


def save_pool(state_dir: Path, context: str, pool: Pool) -> None:
    """Write the pool so that a reader sees all of it or the one before."""
    path = _path(state_dir, context)
    private_dir(path.parent)
    rows = [asdict(standby) for standby in pool.known.values()]
    data = {"added": list(pool.added), "removed": list(pool.removed), "known": rows}
    write_atomic(path, json.dumps(data, indent=1))


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


def age_s(moment: str | None, now: datetime) -> float | None:
    """Seconds since a moment of the pool's file."""
    return None if moment is None else (now - parse_rfc3339(moment)).total_seconds()


def still_parked(known: Standby, now: datetime) -> bool:
    """Whether processes may still wait: they end by themselves when their lease is over."""
    age = age_s(known.parked_at, now)
    if not known.parked_for or age is None:
        return False
    return known.lease_s == 0 or age <= known.lease_s
