"""`brctl dx`: evidence to verdict, for a job or for nodes."""

import asyncio
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.output import say

app = new_app()


@app.command()
def diagnose(
    ctx: typer.Context,
    job: Annotated[str | None, typer.Argument(help="job; default the only one")] = None,
    level: Annotated[int, typer.Option("--level", min=1, max=4, help="1 disturbs nothing")] = 1,
) -> None:
    """Find what is wrong; exit 0 nothing, 1 low confidence, 2 fault found, 3 cannot tell."""
    from brctl.engine.controller.selection import select_nodes
    from brctl.engine.controller.wiring import open_world
    from brctl.engine.incidents.notify_verdicts import notify_diagnosis
    from brctl.engine.job.diagnose import diagnose as run_diagnosis
    from brctl.view.verdict import diagnosis_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()

    async def run() -> None:
        async with open_world(settings) as world:
            chosen = invocation.nodes or invocation.exclude
            about = None if (chosen and job is None) or not world.jobs else world.job(job)
            if about is not None and not chosen:
                names = about.nodes
            else:
                names = await select_nodes(world, invocation.nodes, invocation.exclude)
            found = await run_diagnosis(world, about, names, level=level)
            await notify_diagnosis(world, found, say)
        page = diagnosis_page(found.verdicts, found.status, names, found.sweep.seconds)
        invocation.finish(page, settings.context)

    asyncio.run(run())
