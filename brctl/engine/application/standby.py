"""The pool of standbys: look at it, change who is in it, warm and test it, say how large to be."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from brctl.actions.standby.acquire import free_standbys
from brctl.engine.controller.readonly import refuse_readonly
from brctl.engine.controller.selection import select_nodes
from brctl.engine.controller.wiring import Controller, open_controller
from brctl.engine.runs.context import run_context
from brctl.engine.standby import pool as standby_pool
from brctl.engine.standby.care import (
    check_standbys,
    job_on,
    park_standbys,
    unpark_standbys,
    warm_standbys,
)
from brctl.engine.standby.pool import Pool
from brctl.engine.standby.pool_file import change_pool, load_pool, usable_pool
from brctl.engine.standby.report import standby_rows
from brctl.library.config import Settings
from brctl.model.errors import UsageError
from brctl.model.nodeset import fold
from brctl.model.runs.playbook import Json
from brctl.playbook.placement.domains import domains_for
from brctl.playbook.placement.pool import PoolPlace, pool_place
from brctl.playbook.placement.spread import layout_of
from brctl.playbook.spares import PoolSize, pool_size

Rows = Sequence[Mapping[str, Json]]
_Change = Callable[[Controller, Pool, Sequence[str]], Awaitable[Pool]]


@dataclass(frozen=True, slots=True)
class PoolChange:
    """The nodes that were meant, and every standby as it is now."""

    nodes: tuple[str, ...]
    rows: Rows


@dataclass(frozen=True, slots=True)
class PoolNeed:
    """How many standbys a job needs.

    Attributes:
        source: Where the rate of failures comes from.
        kept: Standbys in the pool.
        free: Those a swap could take now.
        place: Where the pool stands; None where no label says it.
    """

    job: str
    size: PoolSize
    source: str
    kept: int
    free: int
    place: PoolPlace | None


async def list_standbys(settings: Settings) -> Rows:
    """Every standby as it is now."""
    async with open_controller(settings) as controller:
        return await standby_rows(controller, load_pool(settings.state_dir, settings.context))


async def add_standbys(settings: Settings, nodes: str, exclude: str | None = None) -> PoolChange:
    """Put nodes into the pool.

    Raises:
        UsageError: One carries a job, or is not in the inventory.
    """
    return await _changed(settings, nodes, exclude, _add)


async def remove_standbys(settings: Settings, nodes: str, exclude: str | None = None) -> PoolChange:
    """Take nodes out of the pool and end what is parked on them."""
    return await _changed(settings, nodes, exclude, _remove)


async def warm(
    settings: Settings,
    nodes: str | None,
    job: str | None,
    lease_s: float,
    exclude: str | None = None,
) -> PoolChange:
    """Load the training environment; with a job, park processes that become its ranks."""

    async def change(controller: Controller, pool: Pool, names: Sequence[str]) -> Pool:
        # Who names no nodes means standbys; one that carries ranks by now is none.
        chosen = names if nodes else [name for name in names if job_on(controller, name) is None]
        if job is None:
            return await warm_standbys(controller, pool, chosen)
        return await park_standbys(controller, pool, chosen, controller.job(job), lease_s)

    return await _changed(settings, nodes, exclude, change)


async def check(settings: Settings, nodes: str | None, exclude: str | None = None) -> PoolChange:
    """Run the self-checks, and park anew what waited.

    Raises:
        UsageError: One is no standby.
    """

    async def change(controller: Controller, pool: Pool, names: Sequence[str]) -> Pool:
        strangers = [name for name in names if name not in _everybody(controller, pool)]
        if strangers:
            raise UsageError(f"{fold(strangers)}: not in the pool", hint="brctl standby list")
        return await check_standbys(controller, pool, names)

    return await _changed(settings, nodes, exclude, change)


async def pool_need(
    settings: Settings,
    job: str | None,
    risk: float,
    rate: float | None,
    refill_days: float | None = None,
) -> PoolNeed:
    """How many standbys a job needs, by the site's own rate of failures or a given one."""
    async with open_controller(settings) as controller:
        context = run_context(controller)
        chosen = await context.jobs.get(controller.job(job).name)
        known = standby_pool.daily_rate(settings.state_dir, len(chosen.nodes), controller.now())
        wanted = pool_size(chosen, known.daily if rate is None else rate, risk, refill_days)
        free = await free_standbys(context)
        members = load_pool(settings.state_dir, settings.context).members(controller.inventory)
        domains = domains_for(controller.inventory.labels(), chosen.nodes)
    place = pool_place(layout_of(chosen), chosen.nodes, members, domains, max(1, wanted.losses))
    source = known.source if rate is None else "given"
    return PoolNeed(chosen.name, wanted, source, len(members), len(free), place)


async def _add(controller: Controller, pool: Pool, names: Sequence[str]) -> Pool:
    jobs = await run_context(controller).jobs.all()
    busy = {node: job.name for job in jobs for node in job.nodes}
    pool = await unpark_standbys(controller, pool, names)
    return standby_pool.add(pool, controller.inventory, names, busy)


async def _remove(controller: Controller, pool: Pool, names: Sequence[str]) -> Pool:
    return standby_pool.remove(await unpark_standbys(controller, pool, names), names)


async def _meant(
    controller: Controller, pool: Pool, nodes: str | None, exclude: str | None
) -> tuple[str, ...]:
    """The nodes that were named; without a name the whole pool, also who left the inventory."""
    if nodes:
        return tuple(await select_nodes(controller, nodes, exclude))
    left_out = set(await select_nodes(controller, exclude)) if exclude else set()
    return tuple(name for name in _everybody(controller, pool) if name not in left_out)


def _everybody(controller: Controller, pool: Pool) -> Mapping[str, None]:
    """Members, and nodes on which something waits, in order."""
    return dict.fromkeys([*pool.members(controller.inventory), *pool.parked()])


async def _changed(
    settings: Settings, nodes: str | None, exclude: str | None, change: _Change
) -> PoolChange:
    """Change the pool's file for the nodes that were named; without a name for all of it.

    The nodes are asked without the lock of the file; what others wrote meanwhile stands.
    """
    refuse_readonly(settings, action="standby pool", nodes=nodes or "")
    async with open_controller(settings) as controller:
        pool = usable_pool(settings.state_dir, settings.context)
        names = await _meant(controller, pool, nodes, exclude)
        after = await change(controller, pool, names)
        stored = change_pool(
            settings.state_dir, settings.context, lambda now: now.with_changes(pool, after)
        )
        return PoolChange(names, await standby_rows(controller, stored))
