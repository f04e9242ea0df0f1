"""`brctl stacks`: stacks of all ranks, and who is the odd one out."""

import asyncio
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.progress import progress
from brctl.model.errors import UsageError
from brctl.model.units import parse_duration_s

app = new_app()

_JOB = typer.Option("--job", help="job name, or job.yaml")


@app.callback()
def stacks() -> None:
    """Where every rank stands, grouped; outliers lead to a parallel group and its nodes."""


@app.command()
def dump(
    ctx: typer.Context,
    job: Annotated[str | None, _JOB] = None,
    times: Annotated[int, typer.Option("--times", min=1, max=60, help="rounds")] = 1,
    every: Annotated[str, typer.Option("--every", help="time between rounds")] = "10s",
) -> None:
    """Capture stacks with py-spy over SSH, keep them, and show who differs.

    Exit 0 when nobody differs or the job takes steps: ranks at work stand in different places.
    """
    from brctl.engine.controller.selection import select_nodes
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.job.looks import ask_job, look_before
    from brctl.engine.job.stack_store import new_folder
    from brctl.engine.job.stacks import analyse_folder, capture_rounds
    from brctl.evidence.stacks.advancing import at_work
    from brctl.view.job.stacks import stacks_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    every_s = parse_duration_s(every)

    async def run() -> None:
        async with open_controller(settings) as controller:
            chosen = controller.job(job)
            nodes = await select_nodes(controller, invocation.nodes, invocation.exclude)
            folder = new_folder(controller.state_dir, chosen.name, controller.now())
            with progress(f"stacks of {chosen.world_size} ranks", quiet=invocation.quiet) as line:
                await capture_rounds(
                    controller, chosen, folder, times=times, every_s=every_s, nodes=nodes
                )
                line.tell("asking the ranks for their steps")
                status = await ask_job(controller, chosen, look_before(controller, chosen))
        invocation.note(f"stacks kept in {folder}")
        result = analyse_folder(folder, chosen)
        if status.stalled is False:
            result = at_work(result, status.step)
        invocation.finish(stacks_page(result), settings.context)

    asyncio.run(run())


@app.command()
def show(
    ctx: typer.Context,
    job: Annotated[str | None, _JOB] = None,
    suspects: Annotated[bool, typer.Option("--suspects", help="only the odd ones")] = False,
) -> None:
    """Show the newest captured stacks again."""
    from brctl.engine.controller.wiring import which_job
    from brctl.engine.job.stack_store import newest_folder
    from brctl.engine.job.stacks import analyse_folder
    from brctl.library.jobs import load_jobs
    from brctl.view.job.stacks import stacks_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    jobs = load_jobs(settings.jobs)
    name = job or (next(iter(jobs)) if len(jobs) == 1 else "")
    if name not in jobs:
        raise which_job(jobs)
    result = analyse_folder(newest_folder(settings.state_dir, name), jobs[name])
    invocation.finish(stacks_page(result, suspects_only=suspects), settings.context)


@app.command()
def analyse(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="rank-00003.json, or round-N/")],
    job: Annotated[Path | None, typer.Option("--job", help="job.yaml")] = None,
) -> None:
    """Analyse stacks captured elsewhere: py-spy's JSON or text, one file a rank."""
    from brctl.engine.job.stacks import analyse_folder
    from brctl.library.jobs import load_job
    from brctl.view.job.stacks import stacks_page

    invocation: Invocation = ctx.obj
    if job is None:
        _need_job()
    invocation.finish(stacks_page(analyse_folder(folder, load_job(job))))


def _need_job() -> NoReturn:
    raise UsageError(
        "stacks analyse needs --job job.yaml: it maps ranks to parallel groups and nodes"
    )
