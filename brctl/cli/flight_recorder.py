"""`brctl flight-recorder`: who keeps the others waiting, from the collective dumps of all ranks."""

from pathlib import Path
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app

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
    from brctl.engine.flight import analyse_folder
    from brctl.library.jobs import load_job
    from brctl.view.flight import flight_page

    invocation: Invocation = ctx.obj
    invocation.finish(flight_page(analyse_folder(folder, load_job(job) if job else None)))
