"""`brctl dx`: evidence to verdict, for a job or for nodes."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from brctl.cli.asking import can_ask, says_yes
from brctl.cli.disk_trouble import disk_trouble
from brctl.cli.invocation import Invocation, new_app
from brctl.cli.options import BesideJob, Identity
from brctl.cli.output import say, with_error
from brctl.cli.the_verdict import look
from brctl.cli.typed import refuse_no_file
from brctl.model.errors import BrctlError, UnavailableError, UsageError
from brctl.view.notices.page import Page

if TYPE_CHECKING:
    from brctl.engine.application.diagnose import DiagnosisScope
    from brctl.engine.controller.wiring import Controller
    from brctl.engine.job.diagnose import Diagnosis
    from brctl.model.deeper_look import DeeperLook

app = new_app()


@app.command()
def diagnose(
    ctx: typer.Context,
    job: Annotated[str | None, typer.Argument(help="job; default the only one")] = None,
    level: Annotated[int, typer.Option("--level", min=1, max=4, help="1 disturbs nothing")] = 1,
    beside: BesideJob = False,
    record: Annotated[
        Path | None, typer.Option("--record", help="write what it judged by to this file")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option("--replay", help="tell a recorded incident; asks nobody")
    ] = None,
    identity: Identity = None,
) -> None:
    """Find what is wrong; exit 0 nothing, 1 low confidence, 2 fault found, 3 cannot tell."""
    from brctl.engine.application.diagnose import scope_of
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.job.deeper import deeper_look
    from brctl.view.verdict import diagnosis_page

    invocation: Invocation = ctx.obj
    if replay is not None:
        _tell_again(invocation, replay, identity, job, record)
    refuse_no_file("--record", record)
    settings = invocation.settings()

    async def run() -> None:
        async with open_controller(settings) as controller:
            scope = await scope_of(controller, job, invocation.nodes, invocation.exclude)
            agreed = beside or _agrees(invocation, controller, scope, level)
            found = await look(invocation, controller, scope, level=level, beside_job=agreed)
            deeper = deeper_look(controller, scope.job, scope.nodes, level)
            settling = _settling(invocation, controller, scope, found) if level == 1 else None
            if settling is not None:
                found = await look(
                    invocation,
                    controller,
                    scope,
                    level=settling.level,
                    heavy=settling.checks,
                    beside_job=True,
                )
        page = diagnosis_page(
            found.verdicts, found.status, scope.nodes, found.sweep.seconds, deeper
        )
        if record is not None:
            page = _recorded(invocation, settings.state_dir, found.sweep.id, record, page)
        invocation.finish(page, settings.context)

    asyncio.run(run())


def _tell_again(
    invocation: Invocation, file: Path, identity: Path | None, job: str | None, record: Path | None
) -> NoReturn:
    from brctl.engine.application.incident_files import told_again

    if job is not None or record is not None or invocation.nodes or invocation.exclude:
        raise UsageError(
            "--replay tells what was recorded: no job, no nodes, no --record beside it"
        )
    invocation.finish(told_again(file, identity))


def _recorded(invocation: Invocation, state_dir: Path, look: str, file: Path, page: Page) -> Page:
    """The answer, once what it rests on is in the file; it is told where that cannot be written."""
    from brctl.engine.application.incident_files import record_looks
    from brctl.engine.recording.export import Wanted

    try:
        written = record_looks(state_dir, Wanted(look=look), file)
    except BrctlError as error:
        return with_error(page, error)
    except OSError as error:
        why = UnavailableError(f"{file}: cannot be written: {error.strerror}")
        return with_error(page, disk_trouble(error) or why)
    for line in written.text.splitlines():
        invocation.note(line)
    return page


def _settling(
    invocation: Invocation, controller: "Controller", scope: "DiagnosisScope", found: "Diagnosis"
) -> "DeeperLook | None":
    """The look that may settle the leads, where a person who was shown them pays its price."""
    from brctl.engine.job.deeper import deeper_look
    from brctl.view.verdict import deeper_line, diagnosis_page, left_open

    likeliest = found.verdicts[0]
    leads = {likeliest.fault, *(other.fault for other in likeliest.alternatives)}
    if not (can_ask(invocation) and left_open(likeliest)):
        return None
    deeper = deeper_look(controller, scope.job, scope.nodes, 1, leads)
    if deeper is None:
        return None
    say(diagnosis_page(found.verdicts, found.status, scope.nodes, found.sweep.seconds).text)
    return deeper if says_yes(f"{deeper_line(deeper)}. Look now?") else None


def _agrees(
    invocation: Invocation, controller: "Controller", scope: "DiagnosisScope", level: int
) -> bool:
    """Whether a person at the terminal wants a look that slows a job; False where nobody sits."""
    from brctl.engine.job.deeper import deeper_look
    from brctl.view.verdict import deeper_line

    if level == 1 or not can_ask(invocation):
        return False
    deeper = deeper_look(controller, scope.job, scope.nodes, 1)
    if deeper is None or not deeper.busy:
        return False
    return says_yes(f"{deeper_line(replace(deeper, level=level))}. Look all the same?")
