"""The standby pool as numbers, from its file alone: a sweep asks no node for them."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime

from brctl.engine.controller.wiring import Controller
from brctl.engine.standby.pool import Pool, Standby, still_parked
from brctl.engine.standby.pool_file import load_pool
from brctl.model.errors import BrctlError
from brctl.model.inventory import Inventory
from brctl.model.sweeps.sweep import Health

STATES = ("parked", "warm", "cold", "bad")


def standby_totals(controller: Controller, say: Callable[[str], None]) -> Mapping[str, float]:
    """Prometheus series of the pool; none when it cannot be read, because a zero would be a lie."""
    context = controller.settings.context
    try:
        pool = load_pool(controller.state_dir, context)
    except (BrctlError, OSError) as exc:
        say(f"warning: the standby pool cannot be read: {exc}")
        return {}
    states = state_counts(pool, controller.inventory, controller.now())
    return standby_series(states, parked_ranks(pool, controller.now()), context)


def standby_series(
    states: Mapping[str, int], ranks: Mapping[str, int], context: str
) -> Mapping[str, float]:
    """Members by state and processes by job, by whole series name."""
    found = {
        f'brctl_standby_nodes{{context="{context}",state="{state}"}}': float(count)
        for state, count in states.items()
    }
    return found | {
        f'brctl_standby_parked_ranks{{context="{context}",job="{job}"}}': float(count)
        for job, count in ranks.items()
    }


def state_counts(pool: Pool, inventory: Inventory, now: datetime) -> Mapping[str, int]:
    """The members of the pool by state, each counted once; nothing where there is no pool."""
    members = pool.members(inventory)
    counts = Counter(_state(pool.of(node), now) for node in members)
    return {state: counts[state] for state in STATES} if members else {}


def _state(known: Standby, now: datetime) -> str:
    """Never tested is cold: nothing speaks against it, and nothing for it."""
    if known.health not in (None, Health.OK):
        return "bad"
    if still_parked(known, now):
        return "parked"
    return "warm" if known.warmed_at else "cold"


def parked_ranks(pool: Pool, now: datetime) -> Mapping[str, int]:
    """Processes that wait, by job; also those beside a job's own ranks, on nodes of no pool."""
    counts: Counter[str] = Counter()
    for node in pool.parked():
        known = pool.of(node)
        counts[known.parked_for or ""] += known.parked_ranks if still_parked(known, now) else 0
    return dict(sorted(counts.items()))
