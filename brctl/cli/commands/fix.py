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
from brctl.cli.the_verdict import one_verdict
from brctl.engine.application.fix import choose_fix, join_fixes
from brctl.engine.controller.clock import now

app = new_app()


@app.command()
def fix(
    ctx: typer.Context,
    verdict_id: Annotated[
        list[str] | None,
        typer.Argument(help="default the only open one; several in one run", show_default=False),
    ] = None,
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
    named = verdict_id or ()
    found = [one_verdict(invocation, settings, name) for name in named]
    found = found or [one_verdict(invocation, settings, None)]
    fixes = [choose_fix(settings, stored, now()) for stored in found]
    for fix_of_one in fixes:
        verdict = fix_of_one.verdict
        invocation.note(f"{verdict.id} {verdict.fault}: {fix_of_one.say}")
    joint = join_fixes(fixes)
    first = joint.first
    consent = Consent(yes, confirm, dry_run, detach, override, message, joint.also)
    run = asyncio.run(
        run_playbook(invocation, settings, first.playbook, joint.values, first.verdict, consent)
    )
    finish_run(invocation, settings, run)
