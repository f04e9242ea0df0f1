"""`brctl cordon|uncordon|swap`: changes a person makes by hand, as runs with a journal."""

import asyncio
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.options import ConfirmSwap, DryRun, Nodes
from brctl.cli.running import Consent, OverrideOption, finish_run, run_playbook
from brctl.engine.application.by_hand import node_names, swap_inputs
from brctl.engine.application.runs import find_playbook
from brctl.model.errors import UsageError
from brctl.model.runs.playbook import Json

app = new_app()

Message = Annotated[str, typer.Option("-m", "--message", help="why, for the people after you")]


@app.command()
def cordon(
    ctx: typer.Context,
    nodes: Nodes,
    message: Message,
    drain: Annotated[bool, typer.Option("--drain", help="ask their work to go, and wait")] = False,
    confirm: ConfirmSwap = None,
    dry_run: DryRun = False,
    override: OverrideOption = "",
) -> None:
    """Take nodes out of service, with a reason; --drain also waits until their work has gone."""
    values: dict[str, Json] = {"reason": message}
    # A drain ends other people's pods, so it asks before it acts.
    yes, playbook = not drain, "drain" if drain else "cordon"
    consent = Consent(yes=yes, typed=confirm, dry_run=dry_run, override=override, why=message)
    _run_on(ctx.obj, playbook, nodes, values, consent)


@app.command()
def uncordon(
    ctx: typer.Context,
    nodes: Nodes,
    message: Annotated[str, typer.Option("-m", "--message", help="why")] = "",
    take_over: Annotated[bool, typer.Option("--take-over", help="lift others' cordons")] = False,
    dry_run: DryRun = False,
) -> None:
    """Give cordoned nodes back; somebody else's cordon needs --take-over and a message."""
    if take_over and not message:
        raise UsageError("--take-over needs -m: say why you lift somebody else's cordon")
    values: dict[str, Json] = {"owner": "anyone" if take_over else "brctl", "note": message}
    _run_on(ctx.obj, "uncordon", nodes, values, Consent(yes=True, dry_run=dry_run))


@app.command()
def swap(
    ctx: typer.Context,
    nodes: Nodes,
    message: Message,
    job: Annotated[str | None, typer.Option("--job", help="default the one they carry")] = None,
    confirm: ConfirmSwap = None,
    dry_run: DryRun = False,
    override: OverrideOption = "",
) -> None:
    """Replace nodes by standbys and resume their job from the newest whole checkpoint."""
    invocation: Invocation = ctx.obj
    values = asyncio.run(swap_inputs(invocation.settings(), nodes, job, message))
    consent = Consent(typed=confirm, dry_run=dry_run, override=override, why=message)
    _run(invocation, "swap-and-resume", values, consent)


def _run_on(
    invocation: Invocation, playbook: str, nodes: str, values: dict[str, Json], consent: Consent
) -> None:
    values["nodes"] = asyncio.run(node_names(invocation.settings(), nodes))
    _run(invocation, playbook, values, consent)


def _run(invocation: Invocation, playbook: str, values: dict[str, Json], consent: Consent) -> None:
    settings = invocation.settings()
    chosen = find_playbook(settings.library_dirs, playbook)
    run = asyncio.run(run_playbook(invocation, settings, chosen, values, None, consent))
    finish_run(invocation, settings, run)
