"""`brctl check list|run|explain|pairs|...`: the catalogue of questions, and asking one of them."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Annotated

import typer

from brctl.cli.check_pairs import pairs
from brctl.cli.check_site import add_site_commands
from brctl.cli.incident_files import score
from brctl.cli.invocation import Invocation, new_app
from brctl.cli.options import BesideJob
from brctl.cli.progress import progress
from brctl.library.checks import site_checks
from brctl.model.errors import ConfigError, UsageError, did_you_mean
from brctl.model.sweeps.check import Check
from brctl.view.fleet.check import check_list_page, check_page

app = new_app()
add_site_commands(app)
app.command("pairs")(pairs)
app.command("incidents")(score)

_BUSY_HINT = "--level 1 runs only what is safe beside a job; --beside-job runs all the same"


@app.command("list")
def list_checks(
    ctx: typer.Context,
    level: Annotated[int, typer.Option("--level", min=1, max=4, help="up to this level")] = 4,
) -> None:
    """List checks with level, needs and deadline."""
    invocation: Invocation = ctx.obj
    checks = [check for check in _known(invocation).values() if check.level <= level]
    invocation.finish(check_list_page(checks))


@app.command()
def explain(
    ctx: typer.Context, name: Annotated[str, typer.Argument(help="check, e.g. gpu.ecc")]
) -> None:
    """What a check measures, what convicts, why, and how to look by hand."""
    invocation: Invocation = ctx.obj
    checks = _known(invocation)
    if name not in checks:
        raise UsageError(f"no check `{name}`; {did_you_mean(name, checks)}")
    invocation.finish(check_page(checks[name]))


@app.command()
def run(
    ctx: typer.Context,
    pattern: Annotated[str, typer.Argument(help="check or pattern, gpu.*")],
    job: Annotated[
        str | None, typer.Option("--job", help="job whose ranks are asked about")
    ] = None,
    level: Annotated[int, typer.Option("--level", min=1, max=4, help="up to this level")] = 4,
    beside: BesideJob = False,
) -> None:
    """Run checks of any level on nodes now; above 1 only on nodes no job runs on."""
    from brctl.engine.controller.selection import select_nodes
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.sweeps.run_checks import (
        Question,
        choose_checks,
        refuse_heavy_on_busy,
        sweep_nodes,
    )
    from brctl.view.fleet.sweep import sweep_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()

    async def ask() -> None:
        async with AsyncExitStack() as stack:
            line = stack.enter_context(progress("opening the context", quiet=invocation.quiet))
            controller = await stack.enter_async_context(open_controller(settings))
            names = await select_nodes(controller, invocation.nodes, invocation.exclude)
            about = controller.job(job) if job else next(iter(controller.jobs.values()), None)
            question = Question(level, pattern, job=about)
            chosen = choose_checks(controller.checks, question)
            if not beside:
                refuse_heavy_on_busy(controller, names, question, hint=_BUSY_HINT)
            deepest = max(check.level for check in chosen.values())
            result = await sweep_nodes(
                controller, names, replace(question, level=deepest), line.counted(len(names))
            )
        invocation.finish(sweep_page(result, settings.context), settings.context)

    asyncio.run(ask())


def _known(invocation: Invocation) -> Mapping[str, Check]:
    """Shipped checks and the site's; the catalogue can be read without any configuration."""
    try:
        library_dirs = invocation.settings().library_dirs
    except ConfigError:
        if invocation.config or invocation.context:
            raise
        library_dirs = ()
    return site_checks(library_dirs)
