"""`brctl burnin run|status|stop|results`: load idle nodes for long and see who breaks."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.options import OneNode
from brctl.cli.progress import CommandProgress, progress
from brctl.cli.typed import typed
from brctl.model.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from brctl.engine.sweeps.burnin import BurninPlan
    from brctl.model.sweeps.burnin import Burnin

app = new_app()


@app.command()
def run(
    ctx: typer.Context,
    level: Annotated[int, typer.Option("--level", min=2, max=4, help="2, 3 or 4")] = 3,
    duration: Annotated[str, typer.Option("--duration", help="45m")] = "15m",
    stop_on: Annotated[str, typer.Option("--stop-on", help="xid,ecc,thermal")] = "xid,ecc,thermal",
    beside: Annotated[
        bool, typer.Option("--beside-job", "--force-beside-job", help="load nodes with ranks")
    ] = False,
) -> None:
    """Burn nodes in; exit 0 all passed, 2 a node failed, 3 could not finish.

    The load comes in rounds. Between rounds the hardware is looked at, and a node with a new event
    of --stop-on (Xid, ECC, heat) is taken out at once; wrong results always end its burn-in.
    """
    from brctl.engine.sweeps.burnin import BurninPlan
    from brctl.model.units import parse_duration_s

    invocation: Invocation = ctx.obj
    if invocation.nodes is None:
        raise UsageError("which nodes? name them with -w; a burn-in takes them for itself")
    plan = BurninPlan(
        nodes=(),
        level=level,
        duration_s=typed("--duration", duration, parse_duration_s),
        stop_on=_stop_conditions(stop_on),
        beside_job=beside,
    )
    asyncio.run(_run(invocation, plan))


def _stop_conditions(text: str) -> tuple[str, ...]:
    from brctl.evidence.burnin import STOP_ON

    conditions = tuple(filter(None, text.split(",")))
    for condition in conditions:
        if condition not in STOP_ON:
            raise UsageError(f"--stop-on {condition}: unknown; {did_you_mean(condition, STOP_ON)}")
    return conditions


async def _run(invocation: Invocation, plan: "BurninPlan") -> None:
    from dataclasses import replace

    from brctl.engine.controller.selection import select_nodes
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.sweeps.burnin import burn_in
    from brctl.view.fleet.burnin import burnin_page

    settings = invocation.settings()
    async with open_controller(settings) as controller:
        names = await select_nodes(controller, invocation.nodes, invocation.exclude)
        with progress("first round", quiet=invocation.quiet) as line:
            burnin = await burn_in(
                controller, replace(plan, nodes=names), lambda b: _say(invocation, line, b)
            )
    invocation.finish(burnin_page(burnin, settings.context), settings.context)


def _say(invocation: Invocation, line: CommandProgress, burnin: "Burnin") -> None:
    from brctl.model.units import describe_duration

    left = sum(node.state.value == "running" for node in burnin.nodes)
    rounds = max((node.rounds for node in burnin.nodes), default=0)
    text = f"{burnin.id}: {describe_duration(burnin.seconds)}, round {rounds}, {left} nodes in"
    if not invocation.quiet:
        line.say(text)
    line.tell(f"round {rounds + 1} on {left} nodes")


@app.command()
def status(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(help="B-...; the newest without")] = None,
) -> None:
    """How far a burn-in is, as it last wrote."""
    from brctl.engine.sweeps.burnin_store import find, is_alive
    from brctl.view.fleet.burnin import burnin_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    burnin = find(settings.state_dir, name)
    page = burnin_page(burnin, settings.context, alive=is_alive(burnin))
    invocation.finish(page, settings.context)


@app.command()
def stop(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(help="B-...; the newest without")] = None,
) -> None:
    """End a running burn-in after its current round."""
    from brctl.engine.sweeps.burnin_store import ask_to_stop, find, is_alive
    from brctl.view.fleet.burnin import burnin_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    burnin = find(settings.state_dir, name)
    alive = is_alive(burnin)
    if alive:
        ask_to_stop(settings.state_dir, burnin)
        invocation.note(f"{burnin.id} ends after its current round")
    else:
        invocation.note(f"{burnin.id} does not run")
    invocation.finish(burnin_page(burnin, settings.context, alive=alive), settings.context)


@app.command()
def results(ctx: typer.Context, node: OneNode) -> None:
    """What every burn-in said of one node, newest first."""
    from brctl.engine.controller.reach import names_of_the_past, only
    from brctl.engine.sweeps.burnin import history_of
    from brctl.engine.sweeps.burnin_store import load_all
    from brctl.view.fleet.burnin import results_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    node = only(node, asyncio.run(names_of_the_past(settings, node)))
    page = results_page(node, history_of(load_all(settings.state_dir), node))
    invocation.finish(page, settings.context)
