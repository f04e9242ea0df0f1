"""`brctl top`: a job's ranks and nodes, looked at again and again."""

import asyncio
import contextlib
import shutil
import sys
from typing import Annotated

import typer

from brctl.cli import output
from brctl.cli.invocation import Invocation, leave, new_app
from brctl.cli.options import JobArgument
from brctl.cli.typed import typed
from brctl.cli.watch import LEAST_S, captured, display_for, terminated_politely
from brctl.model.errors import UsageError
from brctl.model.exit_codes import ExitCode
from brctl.model.units import describe_duration, parse_duration_s, utc_text
from brctl.view.notices.page import Page

app = new_app()


@app.command()
def top(
    ctx: typer.Context,
    job: JobArgument = None,
    once: Annotated[bool, typer.Option("--once", help="one look, for pipes and cron")] = False,
    every: Annotated[str, typer.Option("--every", help="between two looks")] = "5s",
    rows: Annotated[int, typer.Option("--rows", min=1, max=10_000, help="ranks, nodes")] = 20,
) -> None:
    """Follow a job's ranks and nodes, the slowest first; exit 0 progress, 2 stalled, 3 unknown.

    One connection a node stays open, and nothing is installed; Ctrl-C ends it with the last look's
    exit code. In a pipe one look follows the other. What is not measured is said.
    """
    invocation: Invocation = ctx.obj
    every_s = typed("--every", every, parse_duration_s)
    if every_s < LEAST_S:
        raise UsageError(f"--every {every}: at least {LEAST_S:g} s")
    if once:
        asyncio.run(_once(invocation, job, rows))
    live = _Live(invocation, rows)
    with contextlib.suppress(KeyboardInterrupt), terminated_politely():
        asyncio.run(live.follow(job, every_s))
    leave(live.code)


async def _once(invocation: Invocation, job: str | None, rows: int) -> None:
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.job.top import look_once
    from brctl.view.job.top import top_page

    settings = invocation.settings()
    async with open_controller(settings) as controller:
        look = await look_once(controller, controller.job(job))
    invocation.finish(top_page(look, look, rows, _columns()), settings.context)


def _columns() -> int | None:
    """Of the terminal; a pipe has no width."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


class _Live:
    """One look after the other, in place on a terminal.

    Attributes:
        code: Of the newest look.
    """

    def __init__(self, invocation: Invocation, rows: int) -> None:
        self._invocation, self._rows = invocation, rows
        self.code = ExitCode.INTERRUPTED

    async def follow(self, job: str | None, every_s: float) -> None:
        from brctl.engine.controller.wiring import open_controller
        from brctl.engine.job.top import follow
        from brctl.view.job.top import top_page

        settings, first = self._invocation.settings(), None
        async with contextlib.AsyncExitStack() as stack:
            controller = await stack.enter_async_context(open_controller(settings))
            looks = await stack.enter_async_context(
                contextlib.aclosing(follow(controller, job, every_s))
            )
            # Not before the job is known: a mistake of the command line is no look.
            name = controller.job(job).name
            display = stack.enter_context(
                contextlib.closing(display_for(sys.stdout, self._invocation.output))
            )
            async for look in looks:
                first = first or look
                page = top_page(look, first, self._rows, _columns())
                text = self._text(page, settings.context)
                every = describe_duration(every_s)
                display.show(text, f"{utc_text(look.at)}  brctl top {name}  every {every}")

    def _text(self, page: Page, context: str) -> str:
        given = self._invocation

        def write() -> int:
            output.write(page, given.output, context=context, out=given.out, color=given.color)
            return int(page.exit_code)

        code, text = captured(write)
        self.code = ExitCode(code)
        return text
