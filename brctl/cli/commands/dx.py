"""`brctl dx`: evidence to verdict, for a job or for nodes."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from brctl.cli.asking import can_ask, says_yes
from brctl.cli.invocation import Invocation, new_app
from brctl.cli.options import BesideJob
from brctl.cli.progress import progress

if TYPE_CHECKING:
    from brctl.engine.application.diagnose import DiagnosisScope
    from brctl.engine.controller.wiring import Controller
    from brctl.model.jobs.job_status import JobStatus

app = new_app()

_AND_A_BIT_S = 1.0
"""The look that follows is to find a job that stands still, not one about to."""

_CLOSER = "all nodes answered; comparing, and stacks and dumps where a job stands"


@app.command()
def diagnose(
    ctx: typer.Context,
    job: Annotated[str | None, typer.Argument(help="job; default the only one")] = None,
    level: Annotated[int, typer.Option("--level", min=1, max=4, help="1 disturbs nothing")] = 1,
    beside: BesideJob = False,
) -> None:
    """Find what is wrong; exit 0 nothing, 1 low confidence, 2 fault found, 3 cannot tell."""
    from brctl.engine.application.diagnose import diagnose as run_diagnosis
    from brctl.engine.application.diagnose import scope_of
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.job.deeper import deeper_look
    from brctl.view.verdict import diagnosis_page, late_line

    invocation: Invocation = ctx.obj
    settings = invocation.settings()

    async def run() -> None:
        async with open_controller(settings) as controller:
            scope = await scope_of(controller, job, invocation.nodes, invocation.exclude)
            agreed = beside or _agrees(invocation, controller, scope, level)
            with progress(quiet=invocation.quiet) as line:

                async def wait(status: "JobStatus", seconds: float) -> None:
                    line.say(f"{late_line(status)}; looking again in {seconds:.0f} s")
                    line.tell("waiting for a step")
                    await asyncio.sleep(seconds + _AND_A_BIT_S)
                    line.tell("looking again")

                found = await run_diagnosis(
                    controller,
                    scope,
                    line.say,
                    line.counted(len(scope.nodes), _CLOSER),
                    level=level,
                    beside_job=agreed,
                    wait=wait if can_ask(invocation) else None,
                )
            deeper = deeper_look(controller, scope.job, scope.nodes, level)
        page = diagnosis_page(
            found.verdicts, found.status, scope.nodes, found.sweep.seconds, deeper
        )
        invocation.finish(page, settings.context)

    asyncio.run(run())


def _agrees(
    invocation: Invocation, controller: "Controller", scope: "DiagnosisScope", level: int
) -> bool:
    """Whether a person at the terminal wants a look that slows a job; False where nobody sits."""
    from brctl.engine.job.deeper import deeper_look
    from brctl.view.verdict import deeper_line

    if level == 1 or not can_ask(invocation):
        return False
    look = deeper_look(controller, scope.job, scope.nodes, 1)
    if look is None or not look.busy:
        return False
    return says_yes(f"{deeper_line(replace(look, level=level))}. Look all the same?")
