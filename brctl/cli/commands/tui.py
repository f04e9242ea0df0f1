"""`brctl tui`: the same engine on screens."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from brctl.cli.invocation import Invocation, leave, new_app
from brctl.cli.options import Identity
from brctl.cli.typed import typed
from brctl.library.config import Settings, user_config_dir
from brctl.model.exit_codes import ExitCode
from brctl.model.units import parse_duration_s
from brctl.view.notices.page import Page

if TYPE_CHECKING:
    from brctl.engine.recording.reopened import ReopenedIncident
    from brctl.tui.start import ViewRequest

app = new_app()


@app.command()
def tui(
    ctx: typer.Context,
    view: Annotated[
        str | None,
        typer.Argument(help="fleet verdicts runs bisect incidents standby jobs watch node stacks"),
    ] = None,
    item: Annotated[str, typer.Argument(help="node, verdict, run, incident or job to open")] = "",
    filter_text: Annotated[str, typer.Option("--filter", help="what / would hold")] = "",
    sort: Annotated[str, typer.Option("--sort", help="column of a list, -COLUMN backwards")] = "",
    saved: Annotated[str, typer.Option("--view", help="a view kept with :save NAME")] = "",
    once: Annotated[bool, typer.Option("--once", help="print the view and leave")] = False,
    ascii_only: Annotated[bool, typer.Option("--ascii", help="nothing but ASCII")] = False,
    light: Annotated[bool, typer.Option("--light", help="light colours")] = False,
    rw: Annotated[bool, typer.Option("--rw/--read-only", help="may ask for changes")] = True,
    fps: Annotated[int, typer.Option("--fps", min=1, max=60, help="for slow links")] = 60,
    look_every: Annotated[
        str, typer.Option("--look-every", help="ask jobs' ranks this often, 0s never")
    ] = "15s",
    mouse: Annotated[bool, typer.Option("--mouse/--no-mouse", help="take clicks")] = True,
    replay: Annotated[
        Path | None, typer.Option("--replay", help="show a recorded incident; read-only")
    ] = None,
    identity: Identity = None,
) -> None:
    """Fleet triage in the terminal: n worst, w why, f fix, ? keys."""
    invocation: Invocation = ctx.obj
    from brctl.tui.start import ViewRequest

    request = ViewRequest(
        view=view,
        item=item,
        filter=filter_text or invocation.nodes or "",
        sort=sort,
        saved=saved,
        look_every_s=typed("--look-every", look_every, parse_duration_s),
        mouse=mouse,
        ascii_only=ascii_only,
        light=light,
        fps=fps,
        keys_file=Path(user_config_dir(invocation.environ)) / "keys.yaml",
    )
    if invocation.color == "never":
        # Textual and the commands it lends the terminal to know this one.
        os.environ["NO_COLOR"] = "1"
    if replay is None:
        settings = invocation.settings()
        _show(invocation, replace(settings, readonly=settings.readonly or not rw), request, once)
    from brctl.engine.recording.reopened import reopened

    with reopened(replay, identity) as incident:
        _show(invocation, incident.settings, request, once, incident)


def _show(
    invocation: Invocation,
    settings: Settings,
    request: "ViewRequest",
    once: bool,
    recorded: "ReopenedIncident | None" = None,
) -> NoReturn:
    from brctl.tui.start import print_once, run_tui

    if once:
        text = print_once(settings, request, recorded)
        invocation.finish(Page("TuiView", {"text": text}, text), settings.context)
    run_tui(settings, request, recorded)
    leave(ExitCode.OK)
