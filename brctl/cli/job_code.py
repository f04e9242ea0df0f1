"""`brctl job update|updates`: change the code a job runs, and see how it came to what it runs."""

import asyncio
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation
from brctl.cli.options import JobArgument
from brctl.cli.output import say
from brctl.cli.running import Consent, finish_run, run_playbook
from brctl.cli.typed import typed
from brctl.engine.application.runs import find_playbook, open_context
from brctl.engine.controller.people import person
from brctl.engine.controller.readonly import refuse_readonly
from brctl.engine.controller.wiring import open_controller
from brctl.engine.runs.remediate import RUN_PROGRAM
from brctl.library.config import Settings
from brctl.library.programs.preloaded import PreloadedProcess, preloading
from brctl.model.errors import UsageError
from brctl.model.jobs.code import CodeChange
from brctl.model.runs.playbook import Json
from brctl.model.units import parse_duration_s
from brctl.playbook.code_changes import is_due

PLAYBOOK = "hot-update"
Window = Annotated[str | None, typer.Option("--window", help="how long a change may wait (24h)")]


def update(
    ctx: typer.Context,
    job: JobArgument = None,
    code: Annotated[str | None, typer.Option("--code", help="release, name or path")] = None,
    message: Annotated[str, typer.Option("-m", "--message", help="why")] = "",
    urgent: Annotated[bool, typer.Option("--urgent", help="apply it now, in place")] = False,
    due: Annotated[bool, typer.Option("--due", help="for cron: apply what waited enough")] = False,
    window: Window = None,
    confirm: Annotated[str | None, typer.Option("--confirm", help="what to type: hot")] = None,
) -> None:
    """Record new code; the next restart takes it, or `--urgent` now, or `--due` after 24 h."""
    invocation: Invocation = ctx.obj
    if due == (code is not None):
        raise UsageError("name the code: --code RELEASE -m WHY; or, from cron: --due")
    if due:
        _apply_due(invocation, job, window)
    if code is None or not message.strip():
        raise UsageError("--code needs -m: say why, for the people after you")
    settings = invocation.settings()
    refuse_readonly(settings, action=f"code of job {job}", why=message)
    with preloading(RUN_PROGRAM, wanted=urgent) as preloaded:
        name, change = asyncio.run(_record(invocation, settings, job, code, message, urgent))
        if change.urgent:
            values: dict[str, Json] = {"job": name, "only": "urgent"}
            _apply(invocation, settings, values, Consent(typed=confirm), preloaded)
    updates(ctx, name, window)


async def _record(
    invocation: Invocation, settings: Settings, name: str | None, code: str, why: str, urgent: bool
) -> tuple[str, CodeChange]:
    from brctl.engine.job.code_updates import CodeRequest, record_change

    async with open_controller(settings) as controller:
        chosen = controller.job(name).name
    async with open_context(settings, say) as context:
        request = CodeRequest(code, " ".join(why.split()), person(), urgent)
        change, note = await record_change(context, await context.jobs.get(chosen), request)
    invocation.note(f"{change.id} recorded: {change.version} {change.digest[:12]}")
    if note:
        invocation.note(note)
    return chosen, change


def _apply_due(invocation: Invocation, name: str | None, window: str | None) -> None:
    """Nothing is said when nothing is due: cron would send it by mail."""
    settings = invocation.settings()
    window_s = _window_s(settings, window)

    async def due_job() -> str | None:
        async with open_controller(settings) as controller:
            chosen = controller.job(name).name
        async with open_context(settings, say) as context:
            waits = context.jobs.code_ledger(chosen).read().pending
            return chosen if waits and is_due(waits, context.clock.now(), window_s) else None

    job = asyncio.run(due_job())
    if job is None:
        raise typer.Exit(0)
    _apply(invocation, settings, {"job": job, "only": "due", "window": window_s}, Consent())


def _apply(
    invocation: Invocation,
    settings: Settings,
    values: dict[str, Json],
    consent: Consent,
    preloaded: PreloadedProcess | None = None,
) -> None:
    playbook = find_playbook(settings.library_dirs, PLAYBOOK)
    doing = run_playbook(invocation, settings, playbook, values, None, consent, preloaded=preloaded)
    run = asyncio.run(doing)
    finish_run(invocation, settings, run)


def _window_s(settings: Settings, text: str | None) -> float:
    """As given, else what the site's or the shipped playbook says."""
    if text is not None:
        return typed("--window", text, parse_duration_s)
    default = find_playbook(settings.library_dirs, PLAYBOOK).inputs["window"].default
    return float(default) if isinstance(default, int | float) else 0.0


def updates(ctx: typer.Context, job: JobArgument = None, window: Window = None) -> None:
    """Every change of a job's code: who, why, which run applied it, from which checkpoint."""
    from brctl.engine.job.code_updates import code_of
    from brctl.view.runs.code import code_changes_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()

    async def run() -> None:
        async with open_controller(settings) as controller:
            found, now = controller.job(job), controller.now()
        async with open_context(settings, say) as context:
            record = context.jobs.code_ledger(found.name).read()
        page = code_changes_page(
            found.name, code_of(found), record, now, _window_s(settings, window)
        )
        invocation.finish(page, settings.context)

    asyncio.run(run())
