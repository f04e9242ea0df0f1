"""`brctl replay plan|run`: replay a reduced job in groups of nodes to find a bad machine."""

import asyncio
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.options import JobOption, RoundDeadline, SearchBudget
from brctl.cli.typed import typed
from brctl.model.units import parse_duration_s

app = new_app()

Paper = Annotated[bool, typer.Option("--dual-phase", help="the paper's two fixed phases")]
Factor = Annotated[int | None, typer.Option("--k", min=1, help="replicas a horizontal group")]


@app.callback()
def replay() -> None:
    """TP and PP stay as they are, DP is cut, layers are reduced by the job's own command."""


@app.command()
def plan(ctx: typer.Context, job: JobOption = None, dual: Paper = False, k: Factor = None) -> None:
    """Show the groups that would be replayed, without running anything."""
    from brctl.engine.application.replay import ReplayRequest, plan_replay
    from brctl.view.job.replay import dual_phase_page, first_round_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    planned = asyncio.run(plan_replay(settings, ReplayRequest(job, dual, k)))
    if planned.phases is not None:
        page = dual_phase_page(planned.job, planned.phases)
    else:
        page = first_round_page(planned.job, planned.span, planned.first_round)
    invocation.finish(page, settings.context)


@app.command("run")
def run_replay(
    ctx: typer.Context,
    job: JobOption = None,
    dual: Paper = False,
    k: Factor = None,
    reps: Annotated[int, typer.Option("--reps", min=1, max=16, help="replays a group")] = 1,
    budget: SearchBudget = "2h",
    deadline: RoundDeadline = "20m",
) -> None:
    """Replay in groups until the machine is found; the job itself must not be running."""
    from brctl.cli.commands.nccl import live_rounds
    from brctl.engine.application import replay as application

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    request = application.ReplayRequest(
        job,
        dual,
        k,
        reps,
        typed("--budget", budget, parse_duration_s),
        typed("--round-deadline", deadline, parse_duration_s),
    )
    with live_rounds(invocation) as live:
        found = asyncio.run(application.replay(settings, request, live.also, live.show))
    live.finish(found, settings.context)
