"""`brctl ecc show|history|pending`: GPU memory errors and what they ask for."""

import asyncio
from datetime import timedelta
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.options import OneNode
from brctl.cli.typed import typed

app = new_app()


@app.command()
def show(ctx: typer.Context) -> None:
    """Counters of every GPU, asked now."""
    asyncio.run(_ask(ctx.obj, only_pending=False))


@app.command()
def pending(ctx: typer.Context) -> None:
    """GPUs that ask for a reset or a replacement, asked now."""
    asyncio.run(_ask(ctx.obj, only_pending=True))


async def _ask(invocation: Invocation, *, only_pending: bool) -> None:
    from brctl.engine.controller.selection import select_nodes
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.sweeps.ecc import read_ecc
    from brctl.view.fleet.ecc import ecc_page

    settings = invocation.settings()
    async with open_controller(settings) as controller:
        names = await select_nodes(controller, invocation.nodes, invocation.exclude)
        rows, gaps = await read_ecc(controller, names)
    invocation.finish(ecc_page(rows, gaps, only_pending=only_pending), settings.context)


@app.command()
def history(
    ctx: typer.Context,
    node: OneNode,
    gpu: Annotated[int | None, typer.Option("--gpu", help="only this index")] = None,
    since: Annotated[str, typer.Option("--since", help="30d")] = "30d",
) -> None:
    """How one node's counters moved over the sweeps that are kept."""
    asyncio.run(_history(ctx.obj, node, gpu, since))


async def _history(invocation: Invocation, node: str, gpu: int | None, since: str) -> None:
    from brctl.engine.controller.reach import names_of_the_past, only
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.sweeps.ecc import ecc_history
    from brctl.model.units import parse_duration_s
    from brctl.view.fleet.ecc import ecc_history_page

    back = timedelta(seconds=typed("--since", since, parse_duration_s))
    settings = invocation.settings()
    async with open_controller(settings) as controller:
        node = only(node, await names_of_the_past(settings, node))
        found = ecc_history(controller, node, gpu, controller.now() - back)
    invocation.finish(ecc_history_page(node, found), settings.context)
