"""`brctl flight-recorder`: who keeps the others waiting, from the collective dumps of all ranks."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.model.errors import UsageError

app = new_app()


@app.callback()
def flight_recorder() -> None:
    """Collective dumps of PyTorch's flight recorder."""


@app.command()
def analyse(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="one dump a rank")],
    job: Annotated[Path | None, typer.Option("--job", help="job.yaml: ranks and nodes")] = None,
) -> None:
    """Compare entered and completed collectives over all ranks; dumps are never unpickled."""
    from brctl.engine.job.flight import analyse_folder
    from brctl.library.jobs import load_job
    from brctl.view.job.flight import flight_page

    invocation: Invocation = ctx.obj
    invocation.finish(flight_page(analyse_folder(folder, load_job(job) if job else None)))


@app.command()
def collect(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="where dumps are put")],
    job: Annotated[str | None, typer.Option("--job", help="job name")] = None,
) -> None:
    """Fetch the dumps of a job's ranks from its nodes, then compare them."""
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.job.flight import analyse_folder
    from brctl.engine.job.flight_collect import collect_dumps
    from brctl.view.job.flight import flight_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder}: not empty; old dumps would be mixed with new ones")

    async def run() -> None:
        async with open_controller(settings) as controller:
            chosen = controller.job(job)
            notes = await collect_dumps(
                controller.transport,
                controller.inventory.pick(chosen.nodes),
                chosen,
                folder,
                fanout=settings.ssh.fanout,
            )
        for note in notes:
            invocation.note(note)
        invocation.finish(flight_page(analyse_folder(folder, chosen)), settings.context)

    asyncio.run(run())
