"""`brctl standby list|add|remove|warm|test|size`: the pool that swaps draw from."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from brctl.actions.standby.acquire import free_standbys
from brctl.cli.invocation import Invocation, new_app
from brctl.cli.typed import typed
from brctl.engine.application.runs import refuse_readonly
from brctl.engine.controller.selection import select_nodes
from brctl.engine.controller.wiring import Controller, open_controller
from brctl.engine.runs.context import run_context
from brctl.engine.standby import care as standby_care
from brctl.engine.standby import pool as standby_pool
from brctl.engine.standby.care import unpark_standbys
from brctl.engine.standby.pool import Pool, load_pool, save_pool
from brctl.engine.standby.report import standby_rows
from brctl.model.exit_codes import ExitCode
from brctl.model.nodeset import fold
from brctl.model.runs.playbook import Json
from brctl.model.units import parse_duration_s
from brctl.playbook.spares import DEFAULT_RISK, pool_size
from brctl.view.fleet.standby import standby_list_page, standby_size_page
from brctl.view.notices.page import Page

app = new_app()

Nodes = Annotated[str, typer.Argument(help="nodes", metavar="NODES")]
SomeNodes = Annotated[
    str | None, typer.Argument(help="nodes; default the whole pool", metavar="NODES")
]
Cron = Annotated[bool, typer.Option("--cron", help="say nothing when all is well")]
Change = Callable[[Controller, Pool, Sequence[str]], Awaitable[Pool]]


@app.command("list")
def list_standbys(ctx: typer.Context) -> None:
    """List the pool: who is free, warm, and when its self-checks last passed."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()

    async def run() -> list[dict[str, Json]]:
        async with open_controller(settings) as controller:
            return await standby_rows(controller, load_pool(settings.state_dir, settings.context))

    invocation.finish(standby_list_page(asyncio.run(run())), settings.context)


@app.command()
def add(ctx: typer.Context, nodes: Nodes) -> None:
    """Put nodes into the pool; a node that carries a job is refused."""

    async def change(controller: Controller, pool: Pool, names: Sequence[str]) -> Pool:
        jobs = await run_context(controller).jobs.all()
        busy = {node: job.name for job in jobs for node in job.nodes}
        pool = await unpark_standbys(controller, pool, names)
        return standby_pool.add(pool, controller.inventory, names, busy)

    _change(ctx.obj, nodes, change)


@app.command()
def remove(ctx: typer.Context, nodes: Nodes) -> None:
    """Take nodes out of the pool and end what is parked on them; they stay in the inventory."""

    async def change(controller: Controller, pool: Pool, names: Sequence[str]) -> Pool:
        return standby_pool.remove(await unpark_standbys(controller, pool, names), names)

    _change(ctx.obj, nodes, change)


@app.command()
def warm(
    ctx: typer.Context,
    nodes: SomeNodes = None,
    job: Annotated[
        str | None, typer.Option("--job", help="also park processes for its ranks")
    ] = None,
    lease: Annotated[
        str, typer.Option("--lease", help="parked processes end unless renewed: 30m, 6h")
    ] = "6h",
) -> None:
    """Load the training environment on standbys; with --job park processes that become its ranks.

    NODES may name the job's own nodes too: there they wait beside its ranks, for its next start.
    """
    lease_s = typed("--lease", lease, parse_duration_s)

    async def change(controller: Controller, pool: Pool, names: Sequence[str]) -> Pool:
        # Who names no nodes means standbys; one that carries ranks by now is none.
        chosen = (
            names if nodes else [n for n in names if standby_care.job_on(controller, n) is None]
        )
        if job is None:
            return await standby_care.warm_standbys(controller, pool, chosen)
        return await standby_care.park_standbys(
            controller, pool, chosen, controller.job(job), lease_s
        )

    _change(ctx.obj, nodes, change)


@app.command("test")
def self_check(ctx: typer.Context, nodes: SomeNodes = None, cron: Cron = False) -> None:
    """Run the self-checks of level 2, and park anew what waited; exit 1 when one does not pass."""
    _change(ctx.obj, nodes, standby_care.check_standbys, quiet=cron)


def _change(
    invocation: Invocation, nodes: str | None, change: Change, *, quiet: bool = False
) -> None:
    settings = invocation.settings()
    refuse_readonly(settings)

    async def run() -> Page:
        async with open_controller(settings) as controller:
            pool = load_pool(settings.state_dir, settings.context)
            everybody = tuple(dict.fromkeys([*pool.members(controller.inventory), *pool.parked()]))
            names = await select_nodes(controller, nodes) if nodes else everybody
            after = await change(controller, pool, names)
            save_pool(settings.state_dir, settings.context, after)
            rows = await standby_rows(controller, after)
        if not quiet:
            invocation.note(f"{fold(names)} done")
        return standby_list_page(rows)

    page = asyncio.run(run())
    wrong = any(row["health"] not in (None, "ok") or row["note"] for row in page.rows)
    if quiet and not wrong:
        raise typer.Exit(ExitCode.OK)
    invocation.finish(
        replace(page, exit_code=ExitCode.WARNING if wrong else ExitCode.OK), settings.context
    )


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
        async with open_controller(settings) as controller:
            chosen = controller.job(job)
            known = standby_pool.daily_rate(settings.state_dir, len(chosen.nodes), controller.now())
            wanted = pool_size(chosen, known.daily if rate is None else rate, risk)
            free = await free_standbys(run_context(controller))
            pool = load_pool(settings.state_dir, settings.context)
            kept = len(pool.members(controller.inventory))
        source = known.source if rate is None else "given"
        return standby_size_page(chosen.name, wanted, source, kept, len(free))

    invocation.finish(asyncio.run(run()), settings.context)
