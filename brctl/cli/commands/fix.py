"""`brctl fix [VERDICT]`: run the playbook a verdict proposes."""

import asyncio
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.options import DryRun, LowRiskYes
from brctl.cli.running import (
    Consent,
    OverrideOption,
    WhyOption,
    finish_run,
    run_playbook,
)
from brctl.engine.application.fix import choose_fix
from brctl.engine.controller.clock import now
from brctl.engine.incidents.verdict_store import the_one

app = new_app()


@app.command()
def fix(
    ctx: typer.Context,
    verdict_id: Annotated[str | None, typer.Argument(help="default the only open one")] = None,
    yes: LowRiskYes = False,
    confirm: Annotated[str | None, typer.Option("--confirm", help='e.g. "swap 1"')] = None,
    dry_run: DryRun = False,
    detach: Annotated[bool, typer.Option("--detach", help="return at once")] = False,
    override: OverrideOption = "",
    message: WhyOption = "",
) -> None:
    """Do what a verdict recommends: plan, guards, approval, run."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    chosen = choose_fix(settings, the_one(settings.state_dir, verdict_id), now())
    verdict = chosen.verdict
    invocation.note(f"{verdict.id} {verdict.fault}: {chosen.say}")
    consent = Consent(yes, confirm, dry_run, detach, override, message)
    run = asyncio.run(run_playbook(invocation, settings, chosen.playbook, {}, verdict, consent))
    finish_run(invocation, settings, run)
