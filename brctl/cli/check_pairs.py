"""`brctl check pairs`: every node with its neighbours, bandwidth and every bit."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from brctl.cli.invocation import Invocation
from brctl.cli.options import BesideJob, Repetitions, RoundDeadline
from brctl.cli.typed import typed
from brctl.model.errors import UsageError

if TYPE_CHECKING:
    from brctl.engine.sweeps.pair_test import PairPlan


def pairs(
    ctx: typer.Context,
    size: Annotated[str, typer.Option("--size", help="bytes a rank sends, 64M")] = "64M",
    reps: Repetitions = 8,
    deadline: RoundDeadline = "60s",
    beside: BesideJob = False,
) -> None:
    """Exchange data between neighbours; exit 0 all right, 1 slow, 2 wrong or silent, 3 cannot."""
    from brctl.engine.sweeps.pair_test import PairPlan
    from brctl.model.units import parse_duration_s, parse_size_bytes

    invocation: Invocation = ctx.obj
    if invocation.nodes is None:
        raise UsageError("which nodes? name them with -w; the test takes them for itself")
    plan = PairPlan(
        nodes=(),
        size_bytes=typed("--size", size, parse_size_bytes),
        reps=reps,
        deadline_s=typed("--round-deadline", deadline, parse_duration_s),
        beside_job=beside,
    )
    asyncio.run(_run(invocation, plan))


async def _run(invocation: Invocation, plan: "PairPlan") -> None:
    from dataclasses import replace

    from brctl.engine.controller.selection import select_nodes
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.sweeps.pair_test import exchange_with_neighbours
    from brctl.view.fleet.check_pairs import pairs_page

    settings = invocation.settings()
    async with open_controller(settings) as controller:
        names = await select_nodes(controller, invocation.nodes, invocation.exclude)
        found = await exchange_with_neighbours(controller, replace(plan, nodes=names))
    page = pairs_page(found.results, found.left_out, found.failing, found.notes)
    invocation.finish(page, settings.context)
