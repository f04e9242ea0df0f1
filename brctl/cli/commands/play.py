"""`brctl play`: list, show, validate, plan, run, resume, roll back, approve, look back."""

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from brctl.cli.asking import says_yes
from brctl.cli.invocation import Invocation, new_app
from brctl.cli.options import ConfirmSwap, DryRun
from brctl.cli.output import say
from brctl.cli.running import (
    Consent,
    OverrideOption,
    WhyOption,
    finish_run,
    follow_and_ask,
    library_dirs,
    read_sets,
    request_of,
    run_playbook,
    stop_after_step,
)
from brctl.engine.application.runs import (
    all_playbooks,
    find_playbook,
    open_context,
    read_saved_plan,
)
from brctl.engine.controller.people import person
from brctl.engine.controller.reach import names_of_the_past
from brctl.engine.controller.readonly import refuse_readonly
from brctl.engine.incidents.verdict_store import current
from brctl.engine.runs import remediate
from brctl.engine.runs.read_run import read_run
from brctl.journal.store import find_run, is_running, read_journal
from brctl.library.file_schema import config_schema, inventory_schema, job_schema
from brctl.library.playbook_schema import guards_schema, playbook_schema
from brctl.library.playbooks import load_playbook
from brctl.model.errors import CancelledError, ConfigError, UsageError, did_you_mean
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.result import RunState
from brctl.view.notices.page import Page
from brctl.view.runs.plan import playbook_list_page, playbook_page
from brctl.view.runs.run import history_page, resume_lines
from brctl.view.runs.way_back import way_back
from brctl.view.text import printable

app = new_app()

Name = Annotated[str, typer.Argument(help="playbook, or a file")]
Run = Annotated[str, typer.Argument(help="run, R-0012 or `latest`")]
VerdictId = Annotated[str | None, typer.Option("--verdict", help="verdict behind it")]
Sets = Annotated[list[str] | None, typer.Option("--set", help="input, name=value; repeatable")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="agree; counts for low risk only")]
Detach = Annotated[bool, typer.Option("--detach", help="return at once; the run goes on")]


@app.command("list")
def list_playbooks(ctx: typer.Context) -> None:
    """List playbooks."""
    invocation: Invocation = ctx.obj
    invocation.finish(playbook_list_page(all_playbooks(library_dirs(invocation)).values()))


@app.command()
def show(ctx: typer.Context, name: Annotated[str, typer.Argument(help="playbook or run")]) -> None:
    """Show a playbook, or a run with every event (`-o ndjson` replays its journal)."""
    invocation: Invocation = ctx.obj
    if name == "latest" or name.startswith("R-"):
        settings = invocation.settings()
        found = read_run(find_run(settings.state_dir, name))
        finish_run(invocation, settings, found, followed=False)
    invocation.finish(playbook_page(find_playbook(library_dirs(invocation), name)))


@app.command()
def validate(
    ctx: typer.Context,
    files: Annotated[list[Path] | None, typer.Argument(help="files; default all known")] = None,
) -> None:
    """Find every mistake in playbooks; exit 78 when there is one."""
    invocation: Invocation = ctx.obj
    mistakes: list[str] = []
    names: list[str] = []
    for path in files or [Path(p.path) for p in all_playbooks(library_dirs(invocation)).values()]:
        try:
            names.append(load_playbook(path).name)
        except ConfigError as exc:
            mistakes += str(exc).splitlines()
    lines = [printable(line) for line in mistakes] or [f"{len(names)} playbooks are sound"]
    code = ExitCode.CONFIG if mistakes else ExitCode.OK
    body = {"sound": names, "mistakes": mistakes}
    invocation.finish(Page("Validation", body, "\n".join(lines), code, tuple(names)))


@app.command()
def schema(
    ctx: typer.Context,
    kind: Annotated[
        str, typer.Option("--kind", help="playbook, guards, config, inventory, job")
    ] = "playbook",
) -> None:
    """Print a JSON Schema, so that an editor completes playbooks and brctl's other files."""
    from brctl.actions.registry import about_verbs

    schemas = {
        "playbook": lambda: playbook_schema(about_verbs()),
        "guards": guards_schema,
        "config": config_schema,
        "inventory": inventory_schema,
        "job": job_schema,
    }
    if kind not in schemas:
        raise UsageError(f"--kind {kind}: unknown; {did_you_mean(kind, schemas)}")
    found = schemas[kind]()
    invocation: Invocation = ctx.obj
    invocation.finish(Page("Schema", {"schema": found}, json.dumps(found, indent=2)))


@app.command()
def plan(ctx: typer.Context, name: Name, verdict: VerdictId = None, sets: Sets = None) -> None:
    """Observe and plan for real; change nothing."""
    _run(ctx.obj, name, verdict, sets or [], Consent(dry_run=True))


@app.command()
def run(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(help="playbook, or a file")] = None,
    saved: Annotated[Path | None, typer.Option("--plan", help="run exactly this plan")] = None,
    verdict: VerdictId = None,
    sets: Sets = None,
    yes: Yes = False,
    confirm: ConfirmSwap = None,
    dry_run: DryRun = False,
    detach: Detach = False,
    override: OverrideOption = "",
    message: WhyOption = "",
) -> None:
    """Run a playbook, or a plan that was saved; a saved one is refused if the world moved."""
    consent = Consent(yes, confirm, dry_run, detach, override, message)
    if saved is not None:
        _run_saved(ctx.obj, saved, consent)
    if name is None:
        raise UsageError("which playbook?", hint="brctl play list")
    _run(ctx.obj, name, verdict, sets or [], consent)


def _run_saved(invocation: Invocation, path: Path, consent: Consent) -> None:
    settings, saved = invocation.settings(), read_saved_plan(path)
    playbook = find_playbook(settings.library_dirs, str(saved.get("playbook")))
    verdict_id = saved.get("verdict")
    verdict = current(settings.state_dir, str(verdict_id)).verdict if verdict_id else None
    done = asyncio.run(run_playbook(invocation, settings, playbook, {}, verdict, consent, saved))
    finish_run(invocation, settings, done)


def _run(
    invocation: Invocation, name: str, verdict_id: str | None, sets: list[str], consent: Consent
) -> None:
    settings = invocation.settings()
    playbook = find_playbook(settings.library_dirs, name)
    verdict = current(settings.state_dir, verdict_id).verdict if verdict_id else None
    done = asyncio.run(
        run_playbook(invocation, settings, playbook, read_sets(sets), verdict, consent)
    )
    finish_run(invocation, settings, done)


@app.command()
def resume(
    ctx: typer.Context,
    run: Run,
    yes: Yes = False,
    confirm: ConfirmSwap = None,
    override: OverrideOption = "",
    message: WhyOption = "",
    forward: Annotated[
        bool, typer.Option("--forward", help="do again what a stopped rollback took back")
    ] = False,
) -> None:
    """Go on with a run that waits, was interrupted, or lost its controller.

    A run whose rollback stopped at a step that cannot be undone goes forward again; one whose undo
    failed tries the undo again, unless `--forward` is given. `play rollback` is the other way.
    """
    consent = Consent(yes, confirm, override=override, why=message)
    _go_on(ctx.obj, run, consent, undo=False, forward=forward)


@app.command()
def rollback(ctx: typer.Context, run: Run, yes: Yes = False) -> None:
    """Take back what a run changed and nobody else changed since."""
    _go_on(ctx.obj, run, Consent(yes), undo=True)


_OVER = (RunState.OK, RunState.PARTIAL, RunState.ROLLED_BACK)
"""States in which there is nothing left to resume."""


def _go_on(
    invocation: Invocation, name: str, consent: Consent, *, undo: bool, forward: bool = False
) -> None:
    settings = invocation.settings()
    refuse_readonly(settings, action=f"{'rollback' if undo else 'resume'} {name}")
    run_dir = find_run(settings.state_dir, name)
    before = read_run(run_dir)
    if before.alive:
        raise UsageError(f"{before.name} is running", hint=f"brctl play show {before.name}")
    direction = remediate.resume_direction(before, undo=undo, forward=forward)
    if before.state in _OVER and not undo:
        finish_run(invocation, settings, before)
    back = way_back(before.name, before.playbook, before.record, before.state)
    if undo and back.by_another_change:
        raise UsageError(
            f"{before.name} is through, and what it did is taken back by another change",
            hint="; then ".join(back.commands),
        )
    lists = remediate.resume_lists(before, forward=direction.forward)
    invocation.note("\n".join(resume_lines(lists, direction.why)))
    _ask_to_go_on(invocation, consent)
    after = len(read_journal(run_dir).events) - 1
    request = replace(request_of(settings, consent), undo=undo, forward=direction.forward)

    async def go_on() -> None:
        await remediate.resume(run_dir, request)
        await follow_and_ask(invocation, settings, run_dir, consent, after)

    asyncio.run(go_on())
    finish_run(invocation, settings, read_run(run_dir))


def _ask_to_go_on(invocation: Invocation, consent: Consent) -> None:
    if consent.yes or consent.typed is not None or invocation.no_input:
        return
    if sys.stdin.isatty() and not says_yes("go on?"):
        raise CancelledError("nothing was changed")


@app.command()
def approve(ctx: typer.Context, run: Run, confirm: ConfirmSwap = None) -> None:
    """Say yes to a waiting run and let it go on."""
    invocation: Invocation = ctx.obj
    _answer(invocation, run, yes=True, typed=confirm)
    _go_on(invocation, run, Consent(yes=True), undo=False)


@app.command()
def deny(ctx: typer.Context, run: Run) -> None:
    """Say no to a waiting run; what it changed so far is taken back."""
    invocation: Invocation = ctx.obj
    _answer(invocation, run, yes=False, typed=None)
    _go_on(invocation, run, Consent(yes=True), undo=False)


def _answer(invocation: Invocation, name: str, *, yes: bool, typed: str | None) -> None:
    settings = invocation.settings()
    refuse_readonly(settings, action=f"{'approve' if yes else 'deny'} {name}")
    run_dir = find_run(settings.state_dir, name)

    async def record() -> None:
        async with open_context(settings, say) as context:
            remediate.answer(context, run_dir, person(), yes=yes, typed=typed)

    asyncio.run(record())


@app.command()
def abort(ctx: typer.Context, run: Run) -> None:
    """Ask a run to stop after its current step; it stays resumable."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    refuse_readonly(settings, action=f"abort {run}")
    run_dir = find_run(settings.state_dir, run)
    if not is_running(run_dir):
        raise UsageError(f"{run_dir.name} is not running", hint="brctl play history")
    stop_after_step(run_dir)


@app.command()
def verify(
    ctx: typer.Context,
    runs: Annotated[list[str] | None, typer.Argument(help="runs; default all")] = None,
) -> None:
    """Say which journals are as they were written; exit 2 when one was altered.

    Not seen: an end cut off a run that was killed, a run deleted whole, what the key's owner wrote.
    """
    from brctl.engine.runs.journals.verify import verify_journals
    from brctl.view.runs.verify import journals_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    checks = verify_journals(settings.state_dir, runs or ())
    invocation.finish(journals_page(checks), settings.context)


@app.command()
def history(
    ctx: typer.Context,
    node: Annotated[
        str | None, typer.Option("--node", help="runs about these nodes", metavar="NODES")
    ] = None,
    by: Annotated[str | None, typer.Option("--by", help="runs of this person")] = None,
) -> None:
    """List runs, newest first."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    nodes = asyncio.run(names_of_the_past(settings, node)) if node else None
    runs = tuple(remediate.history(settings.state_dir, nodes, by))
    which = [f"about {node}" if node else "", f"by {by}" if by else ""]
    invocation.finish(history_page(runs, " ".join(filter(None, which))), settings.context)
