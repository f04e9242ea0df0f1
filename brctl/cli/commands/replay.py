"""`brctl replay plan|run`: replay a reduced job in groups of nodes to find a bad machine."""

import asyncio
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.localise.replay import dual_phase, span_of
from brctl.model.errors import UsageError
from brctl.model.jobs.job import Job
from brctl.model.units import parse_duration_s

app = new_app()

JobName = Annotated[str | None, typer.Option("--job", help="default the only one")]
Paper = Annotated[bool, typer.Option("--dual-phase", help="the paper's two fixed phases")]
Factor = Annotated[int | None, typer.Option("--k", min=1, help="replicas a horizontal group")]


@app.callback()
def replay() -> None:
    """TP and PP stay as they are, DP is cut, layers are reduced by the job's own command."""


@app.command()
def plan(ctx: typer.Context, job: JobName = None, dual: Paper = False, k: Factor = None) -> None:
    """Show the groups that would be replayed, without running anything."""
    from brctl.engine.controller.wiring import open_controller
    from brctl.view.job.replay import dual_phase_page, first_round_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()

    async def run() -> None:
        async with open_controller(settings) as controller:
            found = controller.job(job)
        if dual:
            page = dual_phase_page(found, dual_phase(len(found.nodes), span_of(found), k))
        else:
            page = first_round_page(found, span_of(found), _first_groups(found))
        invocation.finish(page, settings.context)

    asyncio.run(run())


def _first_groups(job: Job) -> tuple[tuple[str, ...], ...]:
    from brctl.localise.strategy import Localiser

    first = Localiser(_problem(job, 1)).plan()
    groups = first.groups if first else ()
    return tuple(tuple(job.nodes[i] for i in group) for group in groups)


def _problem(job: Job, reps: int):  # type: ignore[no-untyped-def]  # localise loads numpy: late
    from brctl.localise.problem import SearchProblem

    return SearchProblem(job.nodes, reps=reps, span=max(2, span_of(job)))


@app.command("run")
def run_replay(
    ctx: typer.Context,
    job: JobName = None,
    dual: Paper = False,
    k: Factor = None,
    reps: Annotated[int, typer.Option("--reps", min=1, max=16, help="replays a group")] = 1,
    budget: Annotated[str, typer.Option("--budget", help="for the whole search")] = "2h",
    deadline: Annotated[str, typer.Option("--round-deadline", help="for one round")] = "20m",
) -> None:
    """Replay in groups until the machine is found; the job itself must not be running."""
    from brctl.cli.commands.nccl import Live
    from brctl.engine.controller.clock import now
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.search.bisect import BisectOptions, bisect
    from brctl.engine.search.recorded import OnRound, SearchRecord, record_search
    from brctl.engine.search.replay_phases import run_dual_phase
    from brctl.engine.search.replay_runner import ReplayRunner, replay_command
    from brctl.model.localisation import Bisection

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    try:
        options = BisectOptions("replay", 0, parse_duration_s(budget), parse_duration_s(deadline))
    except ValueError as exc:
        raise UsageError(str(exc)) from exc
    live = Live(invocation)

    async def run() -> None:
        async with open_controller(settings) as controller:
            found = controller.job(job)
            replay_command(found)
            runner = ReplayRunner(controller.transport, controller.inventory.nodes, found)

            async def drive(tell: OnRound) -> Bisection:
                if not dual:
                    return await bisect(_problem(found, reps), options, runner, now, tell)
                phases = dual_phase(len(found.nodes), span_of(found), k)
                return await run_dual_phase(found.nodes, phases, options, runner, now, tell)

            record = SearchRecord(controller.state_dir, live.also)
            recorded = await record_search(found.nodes, runner.name, drive, record, live.show)
        live.finish(recorded, settings.context)

    asyncio.run(run())
