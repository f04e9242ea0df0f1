"""`brctl standby list|add|remove|warm|test|size`: the pool that swaps draw from."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from brctl.actions.standby_acquire import free_standbys
from brctl.cli.invocation import Invocation, new_app
from brctl.cli.running import refuse_readonly
from brctl.engine import standby_pool
from brctl.engine.ground import WorldGround
from brctl.engine.run_site import RunSite
from brctl.engine.standby_pool import Pool, load_pool, save_pool
from brctl.engine.sweeping import choose_nodes
from brctl.engine.wiring import World, open_world
from brctl.model.exit_codes import ExitCode
from brctl.model.nodeset import fold
from brctl.playbook.spares import DEFAULT_RISK, pool_size
from brctl.view.page import Json, Page
from brctl.view.standby import standby_list_page, standby_size_page

app = new_app()

Nodes = Annotated[str, typer.Argument(help="nodes, folded")]
SomeNodes = Annotated[str | None, typer.Argument(help="nodes; default the whole pool")]
Change = Callable[[World, Pool, Sequence[str]], Awaitable[Pool]]


@app.command("list")
def list_standbys(ctx: typer.Context) -> None:
    """List the pool: who is free, warm, and when its self-checks last passed."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()

    async def run() -> list[dict[str, Json]]:
        async with open_world(settings) as world:
            return await _rows(world, load_pool(settings.state_dir, settings.context))

    invocation.finish(standby_list_page(asyncio.run(run())), settings.context)


async def _rows(world: World, pool: Pool) -> list[dict[str, Json]]:
    ground = WorldGround(world)
    cordons = await world.backend.cordons()
    reservations = await world.backend.reservations()
    busy = {node: job.name for job in await ground.jobs() for node in job.nodes}
    rows: list[dict[str, Json]] = []
    for node in pool.members(world.inventory):
        known = pool.of(node)
        state = "free"
        if node in reservations:
            state = f"reserved by {reservations[node].owner}"
        if node in busy:
            state = f"in {busy[node]}"
        if node in cordons:
            state = "cordoned"
        rows.append(
            {
                "node": node,
                "state": state,
                "warmed_age_seconds": standby_pool.age_s(known.warmed_at, world.now()),
                "warm_seconds": known.warm_seconds,
                "health": known.health,
                "tested_age_seconds": standby_pool.age_s(known.tested_at, world.now()),
                "note": known.note or None,
            }
        )
    return rows


@app.command()
def add(ctx: typer.Context, nodes: Nodes) -> None:
    """Put nodes into the pool; a node that carries a job is refused."""

    async def change(world: World, pool: Pool, names: Sequence[str]) -> Pool:
        jobs = await WorldGround(world).jobs()
        busy = {node: job.name for job in jobs for node in job.nodes}
        return standby_pool.add(pool, world.inventory, names, busy)

    _change(ctx.obj, nodes, change)


@app.command()
def remove(ctx: typer.Context, nodes: Nodes) -> None:
    """Take nodes out of the pool; they stay in the inventory."""

    async def change(_world: World, pool: Pool, names: Sequence[str]) -> Pool:
        return standby_pool.remove(pool, names)

    _change(ctx.obj, nodes, change)


@app.command()
def warm(ctx: typer.Context, nodes: SomeNodes = None) -> None:
    """Load the training environment on standbys, so that a swap-in starts warm."""
    _change(ctx.obj, nodes, standby_pool.warm_standbys)


@app.command("test")
def self_check(ctx: typer.Context, nodes: SomeNodes = None) -> None:
    """Run the self-checks of level 2 on standbys; exit 1 when one does not pass."""
    _change(ctx.obj, nodes, standby_pool.examine_standbys)


def _change(invocation: Invocation, nodes: str | None, change: Change) -> None:
    settings = invocation.settings()
    refuse_readonly(settings)

    async def run() -> Page:
        async with open_world(settings) as world:
            pool = load_pool(settings.state_dir, settings.context)
            names = choose_nodes(world, nodes, None) if nodes else pool.members(world.inventory)
            after = await change(world, pool, names)
            save_pool(settings.state_dir, settings.context, after)
            rows = await _rows(world, after)
        invocation.note(f"{fold(names)} done")
        return standby_list_page(rows)

    page = asyncio.run(run())
    bad = any(row["health"] not in (None, "ok") for row in page.rows)
    code = ExitCode.WARNING if bad else ExitCode.OK
    invocation.finish(replace(page, exit_code=code), settings.context)


@app.command()
def size(
    ctx: typer.Context,
    job: Annotated[str | None, typer.Option("--job", help="default the only one")] = None,
    risk: Annotated[float, typer.Option("--risk", min=0.5, max=0.9999)] = DEFAULT_RISK,
    rate: Annotated[
        float | None, typer.Option("--rate", help="failures per node and day", min=0.0, max=0.9)
    ] = None,
) -> None:
    """Say how many standbys a job needs, and what rules: daily losses or the largest group."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()

    async def run() -> Page:
        async with open_world(settings) as world:
            chosen = world.job(job)
            known = standby_pool.daily_rate(settings.state_dir, len(chosen.nodes), world.now())
            wanted = pool_size(chosen, known.daily if rate is None else rate, risk)
            site = RunSite(WorldGround(world), "", settings.state_dir)
            free = await free_standbys(site)
            pool = load_pool(settings.state_dir, settings.context)
            kept = len(pool.members(world.inventory))
        source = known.source if rate is None else "given"
        return standby_size_page(chosen.name, wanted, source, kept, len(free))

    invocation.finish(asyncio.run(run()), settings.context)
