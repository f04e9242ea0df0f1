"""`brctl fix [VERDICT]`: run the playbook a verdict proposes, and what comes next if it fails."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import typer

from brctl.cli.asking import answer_to, can_ask, says_yes
from brctl.cli.invocation import Invocation, new_app
from brctl.cli.options import DryRun, LowRiskYes
from brctl.cli.output import say
from brctl.cli.running import (
    Consent,
    OverrideOption,
    WhyOption,
    finish_run,
    run_playbook,
)
from brctl.cli.the_verdict import look, one_verdict
from brctl.engine.application.diagnose import scope_of
from brctl.engine.application.fix import choose_fix, join_fixes, may_come_again, unproved
from brctl.engine.controller.clock import now
from brctl.engine.controller.wiring import open_controller
from brctl.engine.incidents.verdict_store import StoredVerdict, for_one_fix, load
from brctl.engine.watch.leader import refuse_old_token
from brctl.library.config import Settings
from brctl.model.errors import CancelledError
from brctl.model.verdict import Confidence, Verdict
from brctl.playbook.run import Run
from brctl.view.verdict import diagnosis_page

app = new_app()


@app.command()
def fix(
    ctx: typer.Context,
    verdict_id: Annotated[
        list[str] | None,
        typer.Argument(help="default what is open; several in one run", show_default=False),
    ] = None,
    yes: LowRiskYes = False,
    confirm: Annotated[str | None, typer.Option("--confirm", help='e.g. "swap 1"')] = None,
    dry_run: DryRun = False,
    detach: Annotated[bool, typer.Option("--detach", help="return at once")] = False,
    override: OverrideOption = "",
    message: WhyOption = "",
    watch_token: Annotated[int | None, typer.Option("--watch-token", hidden=True)] = None,
) -> None:
    """Do what a verdict recommends: plan, guards, approval, run."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    may_start = _asked_by(settings, watch_token)
    may_start()
    named = verdict_id or ()
    found = [one_verdict(invocation, settings, name) for name in named]
    found = found or list(for_one_fix(settings.state_dir))
    agreed = _Agreed(found[0].verdict)
    consent = Consent(
        yes, confirm, dry_run, detach, override, message, as_planned=watch_token is not None,
        ask=agreed.to_this, may_start=may_start,
    )  # fmt: skip
    run = asyncio.run(_fix(invocation, settings, found, consent))
    sits_here = can_ask(invocation) and not consent.agreed
    while sits_here and unproved(run):
        invocation.note(f"{run.name} did not help; looking again")
        stored = asyncio.run(_found_again(invocation, settings, run))
        if stored is None:
            break
        again = Consent(ask=agreed.to_next if agreed.covers(stored.verdict) else says_yes)
        try:
            run = asyncio.run(_fix(invocation, settings, [stored], again))
        except CancelledError:
            break  # what stands is how the run before ended
    finish_run(invocation, settings, run)


def _asked_by(settings: Settings, watch_token: int | None) -> Callable[[], None]:
    """What refuses a fix whose watcher leads no more or was stopped; a person's fix goes on."""
    if watch_token is None:
        return lambda: None
    return partial(refuse_old_token, settings.state_dir, settings.context, watch_token)


@dataclass
class _Agreed:
    """What a person said yes to: this fix, or also to the next where the same stands again.

    Attributes:
        verdict: What the first fix is for.
        to_follow: They pressed a.
    """

    verdict: Verdict
    to_follow: bool = False

    def to_this(self, question: str) -> bool:
        """y, or a where the tree has a next move for the same nodes."""
        if not may_come_again(self.verdict):
            return says_yes(question)
        key = answer_to(f"{question} (a: and what follows if the same stands again)", "ya")
        self.to_follow = key == "a"
        return key != ""

    def to_next(self, question: str) -> bool:
        if self.to_follow:
            say(f"{question} yes, agreed before")
        return self.to_follow or says_yes(question)

    def covers(self, verdict: Verdict) -> bool:
        """The same fault on the same nodes, and as sure."""
        sure = verdict.confidence is Confidence.HIGH
        return sure and (verdict.fault, verdict.nodes) == (self.verdict.fault, self.verdict.nodes)


async def _fix(
    invocation: Invocation, settings: Settings, found: Sequence[StoredVerdict], consent: Consent
) -> Run:
    """One run for these verdicts."""
    fixes = [choose_fix(settings, stored, now()) for stored in found]
    for fix_of_one in fixes:
        verdict = fix_of_one.verdict
        invocation.note(f"{verdict.id} {verdict.fault}: {fix_of_one.say}")
    joint = join_fixes(fixes)
    first = joint.first
    consent = replace(consent, also=joint.also)
    return await run_playbook(
        invocation, settings, first.playbook, joint.values, first.verdict, consent
    )


async def _found_again(
    invocation: Invocation, settings: Settings, run: Run
) -> StoredVerdict | None:
    """What is wrong now, as `dx` shows it; None where that is no case for the next playbook."""
    async with open_controller(settings) as controller:
        scope = await scope_of(controller, run.job)
        found = await look(invocation, controller, scope)
    page = diagnosis_page(found.verdicts, found.status, scope.nodes, found.sweep.seconds)
    say(page.text)
    likeliest = found.verdicts[0]
    acts = likeliest.playbook and likeliest.confidence is not Confidence.LOW
    return load(settings.state_dir, likeliest.id) if acts else None
