"""`brctl dx`: evidence to verdict, for a job or for nodes."""

import asyncio
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.progress import progress

app = new_app()

_CLOSER = "all nodes answered; comparing, and stacks and dumps where a job stands"


@app.command()
def diagnose(
    ctx: typer.Context,
    job: Annotated[str | None, typer.Argument(help="job; default the only one")] = None,
    level: Annotated[int, typer.Option("--level", min=1, max=4, help="1 disturbs nothing")] = 1,
) -> None:
    """Find what is wrong; exit 0 nothing, 1 low confidence, 2 fault found, 3 cannot tell."""
    from brctl.engine.application.diagnose import diagnose as run_diagnosis
    from brctl.engine.application.diagnose import scope_of
    from brctl.engine.controller.wiring import open_controller
    from brctl.view.verdict import diagnosis_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()

    async def run() -> None:
        with progress("opening the context", quiet=invocation.quiet) as line:
            async with open_controller(settings) as controller:
                scope = await scope_of(controller, job, invocation.nodes, invocation.exclude)
                on_node = line.counted(len(scope.nodes), _CLOSER)
                found = await run_diagnosis(controller, scope, line.say, on_node, level=level)
        page = diagnosis_page(found.verdicts, found.status, scope.nodes, found.sweep.seconds)
        invocation.finish(page, settings.context)

    asyncio.run(run())
