"""`brctl incident`: what happened, on one time line, and as one file."""

from typing import Annotated

import typer

from brctl.cli.incident_files import add_file_commands
from brctl.cli.invocation import Invocation, new_app
from brctl.cli.options import OpenOnly
from brctl.engine.controller.clock import now
from brctl.engine.controller.people import person
from brctl.engine.incidents.timeline import find_incident, load_incidents
from brctl.journal.incident_notes import add_note
from brctl.model.errors import UsageError, did_you_mean
from brctl.view.incident import incident_document, incident_list_page, incident_page, markdown
from brctl.view.incident_html import incident_html
from brctl.view.notices.page import Page

app = new_app()
add_file_commands(app)
Id = Annotated[str | None, typer.Argument(help="incident; default the only open one")]
FORMATS = ("md", "json", "html")


@app.command("list")
def list_incidents(
    ctx: typer.Context,
    open_only: OpenOnly = False,
) -> None:
    """List incidents, newest first."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    found = load_incidents(settings.state_dir)
    shown = [i for i in found if i.state == "open" or not open_only]
    invocation.finish(incident_list_page(shown), settings.context)


@app.command()
def show(ctx: typer.Context, incident: Id = None) -> None:
    """Show the time line: fault, verdict, runs, approvals, changes, notes."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    found = find_incident(settings.state_dir, incident)
    invocation.finish(incident_page(found), settings.context)


@app.command()
def note(
    ctx: typer.Context,
    incident: Annotated[str, typer.Argument(help="incident")],
    message: Annotated[str, typer.Option("-m", "--message", help="what to remember")],
) -> None:
    """Leave a note on an incident; the TUI and the export show it."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    found = find_incident(settings.state_dir, incident)
    add_note(settings.state_dir, found.id, (now(), person(), message))
    again = find_incident(settings.state_dir, found.id)
    invocation.finish(incident_page(again), settings.context)


@app.command()
def export(
    ctx: typer.Context,
    incident: Id = None,
    form: Annotated[str, typer.Option("--format", help=" or ".join(FORMATS))] = "md",
) -> None:
    """Print a post-mortem's raw material; secrets are taken out."""
    invocation: Invocation = ctx.obj
    if form not in FORMATS:
        raise UsageError(f"--format {form}: unknown; {did_you_mean(form, FORMATS)}")
    settings = invocation.settings()
    found = find_incident(settings.state_dir, incident)
    if form == "json":
        from dataclasses import replace

        as_json = replace(invocation, output="json")
        as_json.finish(incident_page(found), settings.context)
    text = markdown(found, now())
    page = incident_html(found, now()) if form == "html" else None
    body = {**incident_document(found), "markdown": text, "html": page}
    invocation.finish(Page("IncidentExport", body, (page or text).rstrip("\n")), settings.context)
