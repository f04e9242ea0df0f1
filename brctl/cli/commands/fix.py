"""`brctl fix [VERDICT]`: run the playbook a verdict proposes."""

import asyncio
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.running import (
    Consent,
    OverrideOption,
    WhyOption,
    find_playbook,
    finish_run,
    run_playbook,
)
from brctl.engine.controller.clock import now
from brctl.engine.incidents.verdict_store import VerdictState, the_one
from brctl.engine.runs.propose import propose
from brctl.model.errors import GuardError, UsageError
from brctl.playbook.proposals import why_not

app = new_app()


@app.command()
def fix(
    ctx: typer.Context,
    verdict_id: Annotated[str | None, typer.Argument(help="default the only open one")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="agree; low risk only")] = False,
    confirm: Annotated[str | None, typer.Option("--confirm", help='e.g. "swap 1"')] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="plan only")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="return at once")] = False,
    override: OverrideOption = "",
    message: WhyOption = "",
) -> None:
    """Do what a verdict recommends: plan, guards, approval, run."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    stored = the_one(settings.state_dir, verdict_id)
    verdict = stored.verdict
    if stored.state in (VerdictState.DISMISSED, VerdictState.SUPERSEDED):
        raise GuardError(f"refused: {verdict.id} was {stored.state} ({stored.note})")
    move = propose(settings.state_dir, settings.context, verdict, now())
    if not move.playbook:
        raise UsageError(
            f"{verdict.id} ({verdict.fault}): a person must act; {move.say}",
            hint=f"brctl why {verdict.id}",
        )
    invocation.note(f"{verdict.id} {verdict.fault}: {move.say}")
    playbook = find_playbook(settings.library_dirs, move.playbook)
    problem = why_not(playbook, verdict)
    if problem:
        raise GuardError(
            f"refused: {problem}. Nothing changed.",
            hint=f"look again with `brctl dx`, or: brctl play run {playbook.name}"
            f" --verdict {verdict.id}",
        )
    consent = Consent(yes, confirm, dry_run, detach, override, message)
    run = asyncio.run(run_playbook(invocation, settings, playbook, {}, verdict, consent))
    finish_run(invocation, settings, run)
