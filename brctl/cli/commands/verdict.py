"""`brctl verdict list|show|explain|confirm|dismiss`, and `brctl why`."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.options import OpenOnly
from brctl.cli.output import say
from brctl.cli.the_verdict import one_verdict
from brctl.engine.controller.clock import now
from brctl.engine.controller.people import person
from brctl.engine.incidents.verdict_store import (
    StoredVerdict,
    VerdictState,
    load_all,
    save,
    to_read,
)
from brctl.library.config import Settings
from brctl.model.errors import UsageError, did_you_mean
from brctl.model.nodeset import expand
from brctl.view.verdict import verdict_list_page, why_page
from brctl.view.verdict_export import verdict_export_page

app = new_app()
EXPORT_FORMATS = ("md", "json", "html")
Id = Annotated[str | None, typer.Argument(help="verdict; default the only open one, or the newest")]


@app.command("list")
def list_verdicts(
    ctx: typer.Context,
    open_only: OpenOnly = False,
) -> None:
    """List verdicts, newest first."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    stored = load_all(settings.state_dir)
    rows = [
        (s.verdict, s.state.value) for s in stored if not open_only or s.state is VerdictState.OPEN
    ]
    invocation.finish(verdict_list_page(rows), settings.context)


@app.command()
def explain(ctx: typer.Context, verdict_id: Id = None) -> None:
    """Explain a verdict: the chain, what was ruled out, what was not looked at."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    stored = one_verdict(invocation, settings, verdict_id, to_read)
    verdict = stored.verdict
    if stored.state is VerdictState.OPEN:
        from brctl.engine.runs.propose import with_next_move

        verdict = with_next_move(settings.state_dir, settings.context, verdict, now())
    page = why_page(verdict, stored.state.value, stored.note)
    invocation.finish(page, settings.context)


@app.command()
def show(ctx: typer.Context, verdict_id: Id = None) -> None:
    """The same as explain."""
    explain(ctx, verdict_id)


@app.command()
def export(
    ctx: typer.Context,
    verdict_id: Id = None,
    form: Annotated[str, typer.Option("--format", help=" or ".join(EXPORT_FORMATS))] = "md",
) -> None:
    """Print a verdict with its whole chain to hand on; secrets are taken out."""
    invocation: Invocation = ctx.obj
    if form not in EXPORT_FORMATS:
        raise UsageError(f"--format {form}: unknown; {did_you_mean(form, EXPORT_FORMATS)}")
    settings = invocation.settings()
    stored = one_verdict(invocation, settings, verdict_id, to_read)
    page = verdict_export_page(stored.verdict, stored.state.value, stored.note, now(), form)
    as_asked = replace(invocation, output="json") if form == "json" else invocation
    as_asked.finish(page, settings.context)


@app.command()
def confirm(
    ctx: typer.Context,
    verdict_id: Annotated[str, typer.Argument(help="verdict")],
    cause: Annotated[str, typer.Option("--cause", help="class it really was, on -w nodes")] = "",
    file: Annotated[
        Path | None, typer.Option("--file", help="incident file that gets it written in, too")
    ] = None,
) -> None:
    """Record what a verdict turned out to be; check incidents judges by it."""
    _close(ctx.obj, verdict_id, VerdictState.CONFIRMED, cause, file)


@app.command()
def dismiss(
    ctx: typer.Context,
    verdict_id: Annotated[str, typer.Argument(help="verdict")],
    message: Annotated[str, typer.Option("-m", "--message", help="why it is wrong")],
) -> None:
    """Record that a verdict was wrong; it is no longer acted on."""
    _close(ctx.obj, verdict_id, VerdictState.DISMISSED, message)


def _close(
    invocation: Invocation,
    verdict_id: str,
    state: VerdictState,
    note: str,
    file: Path | None = None,
) -> None:
    from brctl.engine.controller.readonly import refuse_readonly

    settings = invocation.settings()
    refuse_readonly(settings, action=f"verdict {verdict_id} {state.value}", why=note)
    found = one_verdict(invocation, settings, verdict_id)
    nodes = tuple(expand(invocation.nodes)) if invocation.nodes else ()
    stored: StoredVerdict = replace(
        found, state=state, note=note, nodes=nodes, by=person(), at=now()
    )  # fmt: skip
    if file is not None:
        from brctl.engine.application.incident_files import confirm_in

        confirm_in(file, stored)
    save(settings.state_dir, stored)
    if state is VerdictState.DISMISSED and settings.notify.sinks:
        _close_page(settings, stored)
    page = why_page(stored.verdict, stored.state.value, stored.note)
    invocation.finish(
        replace(page, text=f"{stored.verdict.id} {state.value}: {note or 'as it was told'}"),
        settings.context,
    )


def _close_page(settings: Settings, stored: StoredVerdict) -> None:
    from brctl.engine.incidents.notify_runs import notify_dismissed
    from brctl.notify.notifier import Notifier

    notifier, state_dir = Notifier(settings.notify, settings.state_dir, now), settings.state_dir
    deliveries = notify_dismissed(
        notifier, settings.context, state_dir, stored, person(), now(), say
    )
    asyncio.run(deliveries)
