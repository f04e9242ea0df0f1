"""`brctl sweep`: ask every node the level's questions at once; cron's verb."""

import asyncio
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app

app = new_app()


@app.command()
def sweep(
    ctx: typer.Context,
    level: Annotated[int, typer.Option("--level", min=1, max=4, help="1 safe beside jobs")] = 1,
    checks: Annotated[str, typer.Option("--checks", help="only checks of this pattern")] = "*",
    profile: Annotated[str, typer.Option("--profile", help="sweep, preflight, storage")] = "sweep",
    job: Annotated[str | None, typer.Option("--job", help="also ask about this job")] = None,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="findings exit 0")] = False,
) -> None:
    """Sweep nodes; exit 0 all well, 1 warnings, 2 a fault, 3 cannot tell."""
    from brctl.engine.name_cache import write_names
    from brctl.engine.sweeping import Question, choose_nodes, sweep_nodes
    from brctl.engine.wiring import open_world
    from brctl.model.exit_codes import ExitCode
    from brctl.view.sweep import sweep_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()

    async def run() -> None:
        async with open_world(settings) as world:
            names = choose_nodes(world, invocation.nodes, invocation.exclude)
            about = world.job(job) if job is not None else None
            result = await sweep_nodes(world, names, Question(level, checks, profile, about))
            write_names(world)
        page = sweep_page(result, settings.context)
        if exit_zero and page.exit_code in (ExitCode.WARNING, ExitCode.CRITICAL):
            from dataclasses import replace

            page = replace(page, exit_code=ExitCode.OK)
        invocation.finish(page, settings.context)

    asyncio.run(run())
