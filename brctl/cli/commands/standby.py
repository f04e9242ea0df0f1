"""`brctl standby list|add|remove|warm|test|size`: the pool that swaps draw from."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Annotated, NoReturn

import typer

from brctl.cli.invocation import Invocation, leave, new_app
from brctl.cli.options import JobOption, Nodes
from brctl.cli.typed import typed
from brctl.engine.application import standby
from brctl.engine.application.standby import PoolChange
from brctl.model.exit_codes import ExitCode
from brctl.model.nodeset import fold
from brctl.model.units import parse_duration_s
from brctl.playbook.spares import DEFAULT_RISK
from brctl.view.fleet.standby import standby_list_page, standby_size_page

app = new_app()

SomeNodes = Annotated[
    str | None, typer.Argument(help="nodes; default the whole pool", metavar="NODES")
]
Cron = Annotated[bool, typer.Option("--cron", help="say nothing when all is well")]


@app.command("list")
def list_standbys(ctx: typer.Context) -> None:
    """List the pool: who is free, warm, and when its self-checks last passed."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    invocation.finish(
        standby_list_page(asyncio.run(standby.list_standbys(settings))), settings.context
    )


@app.command()
def add(ctx: typer.Context, nodes: Nodes) -> None:
    """Put nodes into the pool; a node that carries a job is refused."""
    invocation: Invocation = ctx.obj
    _finish(invocation, standby.add_standbys(invocation.settings(), nodes, invocation.exclude))


@app.command()
def remove(ctx: typer.Context, nodes: Nodes) -> None:
    """Take nodes out of the pool and end what is parked on them; they stay in the inventory."""
    invocation: Invocation = ctx.obj
    _finish(invocation, standby.remove_standbys(invocation.settings(), nodes, invocation.exclude))


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
    On Kubernetes nothing can be parked, and the images of the job's pods are pulled instead.
    """
    invocation: Invocation = ctx.obj
    lease_s = typed("--lease", lease, parse_duration_s)
    chosen, exclude = nodes or invocation.nodes, invocation.exclude
    _finish(invocation, standby.warm(invocation.settings(), chosen, job, lease_s, exclude))


@app.command("test")
def self_check(ctx: typer.Context, nodes: SomeNodes = None, cron: Cron = False) -> None:
    """Run the self-checks of level 2, and park anew what waited; exit 1 when one does not pass."""
    invocation: Invocation = ctx.obj
    chosen, exclude = nodes or invocation.nodes, invocation.exclude
    _finish(invocation, standby.check(invocation.settings(), chosen, exclude), quiet=cron)


def _finish(
    invocation: Invocation, work: Coroutine[None, None, PoolChange], *, quiet: bool = False
) -> NoReturn:
    """Print the pool after a change; exit 1 when a standby is not fit."""
    done = asyncio.run(work)
    page = standby_list_page(done.rows)
    wrong = any(row["health"] not in (None, "ok") or row["note"] for row in page.rows)
    if quiet and not wrong:
        leave(ExitCode.OK)
    if not quiet:
        invocation.note(f"{fold(done.nodes)} done")
    code = ExitCode.WARNING if wrong else ExitCode.OK
    invocation.finish(replace(page, exit_code=code), invocation.settings().context)


@app.command()
def size(
    ctx: typer.Context,
    job: JobOption = None,
    risk: Annotated[float, typer.Option("--risk", min=0.5, max=0.9999)] = DEFAULT_RISK,
    rate: Annotated[
        float | None, typer.Option("--rate", help="failures per node and day", min=0.0, max=0.9)
    ] = None,
    refill: Annotated[
        str | None, typer.Option("--refill", help="until a lost one is replaced: 3d")
    ] = None,
) -> None:
    """Say how many standbys a job needs, by losses of a day or the largest group, and where."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    days = typed("--refill", refill, parse_duration_s) / 86_400 if refill is not None else None
    need = asyncio.run(standby.pool_need(settings, job, risk, rate, days))
    page = standby_size_page(need.job, need.size, need.source, need.kept, need.free, need.place)
    invocation.finish(page, settings.context)
