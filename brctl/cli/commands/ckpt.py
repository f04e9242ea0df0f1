"""`brctl ckpt latest|verify`: which checkpoint a restart would use."""

import asyncio
from typing import Annotated

import typer

from brctl.actions.contract import ActionFailed
from brctl.cli.invocation import Invocation, new_app
from brctl.cli.options import JobOption
from brctl.cli.output import say
from brctl.engine.application.runs import open_context
from brctl.engine.controller.wiring import open_controller
from brctl.engine.job.checkpoints import Checkpoint, look_at_checkpoints
from brctl.model.errors import UnavailableError
from brctl.view.job.checkpoints import checkpoints_page
from brctl.view.notices.page import Json

app = new_app()


@app.command()
def latest(
    ctx: typer.Context,
    job: JobOption = None,
    verify: Annotated[bool, typer.Option("--verify", help="read the contents too")] = False,
    if_lost: Annotated[
        str, typer.Option("--if-lost", metavar="NODES", help="what is left without these nodes")
    ] = "",
) -> None:
    """Show checkpoints, newest first, and the one a restart would use."""
    _list_checkpoints(ctx.obj, job, verify=verify, if_lost=if_lost)


@app.command()
def verify(ctx: typer.Context, job: JobOption = None) -> None:
    """Read the contents of the newest checkpoints and say which are damaged."""
    _list_checkpoints(ctx.obj, job, verify=True)


def _list_checkpoints(
    invocation: Invocation, name: str | None, *, verify: bool, if_lost: str = ""
) -> None:
    settings = invocation.settings()

    async def run() -> None:
        async with open_controller(settings) as controller:
            job = controller.job(name)
        async with open_context(settings, say) as context:
            lost = await context.nodes.select(if_lost) if if_lost else ()
            try:
                seen = await look_at_checkpoints(context, job, verify=verify, without=lost)
            except ActionFailed as exc:
                raise UnavailableError(str(exc)) from exc
        rows = [_row(checkpoint) for checkpoint in seen.checkpoints]
        page = checkpoints_page(job, seen.node, rows, seen.remarks, seen.kept, lost)
        invocation.finish(page, settings.context)

    asyncio.run(run())


def _row(checkpoint: Checkpoint) -> dict[str, Json]:
    return {
        "step": checkpoint.step,
        "path": checkpoint.path,
        "complete": checkpoint.complete,
        "verified": checkpoint.verified,
        "problem": checkpoint.problem or None,
        "age_seconds": checkpoint.age_s,
        "bytes": checkpoint.size_bytes,
        "loader": checkpoint.loader or None,
    }
