"""Start a run, follow its journal, ask when it asks; shared by play, fix, cordon and job."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from brctl.actions.context import RunContext
from brctl.cli import output
from brctl.cli.asking import can_ask, says_yes
from brctl.cli.invocation import Invocation
from brctl.cli.progress import progress
from brctl.engine.application.estimate import with_estimate
from brctl.engine.application.fix import in_the_words_of, start_planned, words_for
from brctl.engine.application.runs import interrupt_run, open_context, read_override, request_for
from brctl.engine.controller.clock import now
from brctl.engine.controller.people import groups_of, person
from brctl.engine.runs.plan import Prepared, prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import (
    RUN_PROGRAM,
    answer,
    prepare_saved,
    resume,
    waiting_for,
    why_not_answer,
)
from brctl.engine.runs.run_files import RunRequest, plan_document
from brctl.journal.follow import follow
from brctl.journal.store import read_journal
from brctl.library.config import Settings, candidate_files
from brctl.library.programs.preloaded import PreloadedProcess, preloading
from brctl.model.errors import CancelledError, UsageError
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.playbook import Json, Need, Playbook
from brctl.model.verdict import Verdict
from brctl.playbook.approvals import YES, needs_a_yes
from brctl.playbook.overrides import Override
from brctl.playbook.run import Run
from brctl.view.runs.plan import plan_page
from brctl.view.runs.run import event_line, run_page
from brctl.view.text import printable


@dataclass(frozen=True, slots=True)
class Consent:
    """What the command line already says to the questions a run may ask.

    Attributes:
        as_planned: Whatever its own plan asks for is said: a watcher's policy and gates decided.
        ask: How a person at the terminal is asked whether a planned run may start.
        may_start: Raises where whoever asked for it may no longer, just before the run starts.
    """

    yes: bool = False
    typed: str | None = None
    dry_run: bool = False
    detach: bool = False
    override: str = ""
    why: str = ""
    also: tuple[str, ...] = ()
    as_planned: bool = False
    ask: Callable[[str], bool] = says_yes
    may_start: Callable[[], None] = lambda: None

    @property
    def agreed(self) -> bool:
        """Nobody is to be asked before the run starts."""
        return self.yes or self.typed is not None or self.detach


OverrideOption = Annotated[
    str, typer.Option("--override", help="let this run pass a guard; needs -m and a group")
]
WhyOption = Annotated[str, typer.Option("-m", "--message", help="why the guard is overridden")]


def library_dirs(invocation: Invocation) -> tuple[Path, ...]:
    """The site's library folders; none where nothing is configured yet, so that one can look."""
    if invocation.config is None and not any(
        path.is_file() for path in candidate_files(invocation.environ)
    ):
        return ()
    return invocation.settings().library_dirs


def read_sets(sets: Sequence[str]) -> dict[str, Json]:
    """`--set name=value` as a mapping."""
    found: dict[str, Json] = {}
    for text in sets:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--set {text}: write name=value")
        found[name] = value
    return found


def request_of(settings: Settings, consent: Consent) -> RunRequest:
    """What the run's process must know about this command."""
    override = read_override(consent.override, consent.why, now())
    request = request_for(settings, yes=consent.yes, typed=consent.typed, override=override)
    return replace(request, also=consent.also)


async def run_playbook(
    invocation: Invocation,
    settings: Settings,
    playbook: Playbook,
    values: Mapping[str, Json],
    verdict: Verdict | None,
    consent: Consent,
    saved: Mapping[str, Json] | None = None,
    preloaded: PreloadedProcess | None = None,
) -> Run:
    """Plan, guard, start and follow; ends the command itself for a dry run or `--detach`."""
    # Who detaches is a watcher or another program: nobody thinks about the plan before the start.
    soon = consent.detach and not consent.dry_run and preloaded is None
    with preloading(RUN_PROGRAM, wanted=soon) as own:
        asked = _ToRun(playbook, values, verdict, saved)
        run_dir, prepared = await _plan_and_start(
            invocation, settings, asked, consent, preloaded or own
        )
    _say_header(invocation, run_dir, prepared)
    if consent.detach:
        finish_run(invocation, settings, read_run(run_dir))
    await follow_and_ask(invocation, settings, run_dir, consent)
    return read_run(run_dir)


@dataclass(frozen=True, slots=True)
class _ToRun:
    """What is to run: a playbook with its inputs, or one that was planned and saved."""

    playbook: Playbook
    values: Mapping[str, Json]
    verdict: Verdict | None
    saved: Mapping[str, Json] | None

    async def plan(self, context: RunContext, override: Override | None) -> Prepared:
        if self.saved is None:
            return await prepare(context, self.playbook, self.verdict, self.values, override)
        return await prepare_saved(context, self.playbook, self.saved, self.verdict, override)


async def _plan_and_start(
    invocation: Invocation,
    settings: Settings,
    asked: _ToRun,
    consent: Consent,
    preloaded: PreloadedProcess | None,
) -> tuple[Path, Prepared]:
    request = request_of(settings, consent)
    async with open_context(settings, output.say) as context:
        prepared = await asked.plan(context, request.override)
        asks = _asks_first(invocation, prepared, consent)
        shows = asks or _asks_at_its_gate(invocation, prepared, consent)
        if consent.dry_run or shows:
            prepared = await with_estimate(context, prepared, asked.verdict)
        if consent.dry_run:
            invocation.finish(
                plan_page(prepared.plan, plan_document(prepared.plan)), settings.context
            )
        if shows:
            output.say(plan_page(prepared.plan, {}).text)
        if asks:
            _ask_before(consent)
            request = replace(request, typed=YES)
        if consent.as_planned:
            request = in_the_words_of(prepared, request)
        consent.may_start()
        run_dir = await start_planned(context, settings, prepared, request, preloaded=preloaded)
    return run_dir, prepared


def _asks_first(invocation: Invocation, prepared: Prepared, consent: Consent) -> bool:
    """Whether ranks would end, a y is enough, and a person sits here."""
    needed = needs_a_yes(prepared.plan, words_for(prepared))
    return not consent.agreed and needed and can_ask(invocation)


def _asks_at_its_gate(invocation: Invocation, prepared: Prepared, consent: Consent) -> bool:
    """Whether a person who sits here will be asked for words, and is to know the cost before."""
    plan = prepared.plan
    waits = plan.people is not Need.NONE and not plan.refused
    return not consent.agreed and waits and can_ask(invocation)


def _ask_before(consent: Consent) -> None:
    """One question.

    Raises:
        CancelledError: Whoever sits here did not agree.
    """
    if not consent.ask("start it?"):
        raise CancelledError("nothing was changed")


def _say_header(invocation: Invocation, run_dir: Path, prepared: Prepared) -> None:
    plan = prepared.plan
    about = f" for {plan.verdict}" if plan.verdict else ""
    passed = sum(guard.ok for guard in plan.guards)
    invocation.note(
        f"{run_dir.name}  {plan.playbook}{about} ({', '.join(plan.nodes) or 'no node'})"
    )
    invocation.note(f"guards  {passed}/{len(plan.guards)} ok")


async def follow_and_ask(
    invocation: Invocation, settings: Settings, run_dir: Path, consent: Consent, after: int = -1
) -> None:
    """Show the run as it goes; when it waits and a person sits here, ask and let it go on."""
    while True:
        asked, after = await show_events(invocation, run_dir, after)
        if not asked or not can_ask(invocation):
            return
        problem = why_not_answer(run_dir, person(), groups_of)
        typed = _prompt(run_dir) if problem is None else ""
        if not typed:
            somebody = f"somebody else ({problem})" if problem else "go on"
            invocation.note(f"left waiting; {somebody}: brctl play approve {run_dir.name}")
            return
        async with open_context(settings, output.say) as context:
            answer(context, run_dir, person(), yes=True, typed=typed)
        await resume(run_dir, request_of(settings, consent))


def _prompt(run_dir: Path) -> str:
    words = waiting_for(run_dir)
    if words == YES:
        return YES if says_yes("go on?") else ""
    output.say(f"type `{words}` to go on, Enter to leave it waiting: ")
    return sys.stdin.readline().strip()


async def show_events(invocation: Invocation, run_dir: Path, after: int) -> tuple[bool, int]:
    """Follow until this process of the run ends; whether it asked, and the last line's number."""
    playbook, asked, last = read_run(run_dir).playbook, False, after
    with _passing_on_interrupts(run_dir), progress(quiet=invocation.quiet) as line:
        async for event in follow(run_dir, after_seq=after):
            last = event.seq
            line.tell(_doing(event))
            asked = event.type is EventType.APPROVAL_ASKED or (
                asked and event.type is not EventType.RUN_RESUMED
            )
            text = event_line(playbook, event)
            if text and not invocation.quiet and invocation.output in ("table", "wide"):
                line.say(text)
    return asked, last


_BEGUN = {EventType.STEP_INTENT: "step", EventType.UNDO_INTENT: "taking back"}


def _doing(event: Event) -> str:
    """What the run is at since an event, for the line that changes."""
    begun = _BEGUN.get(event.type)
    step = printable(str(event.fields.get("step", "")), 60)
    return f"      {begun} {step} ..." if begun else "      the next step ..."


@contextlib.contextmanager
def _passing_on_interrupts(run_dir: Path) -> Iterator[None]:
    """Ctrl-C asks the run to stop after its step; a second one stops it at once."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, stop_after_step, run_dir)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def stop_after_step(run_dir: Path) -> None:
    """What Ctrl-C does while a run is followed."""
    if interrupt_run(run_dir):
        output.say("stopping after the current step; once more stops now")


def finish_run(
    invocation: Invocation, settings: Settings, run: Run, *, followed: bool = True
) -> NoReturn:
    """Write the run's document and leave with its exit code.

    A person who followed the run has seen its steps go by, so only the ending is left to say.
    """
    events = read_journal(run.run_dir).events
    page = run_page(run.name, run.playbook, run.record, run.state, events, run.damage)
    if followed:
        lines, ending = page.text.splitlines(), f"{run.name} {run.state}"
        first = next(i for i, line in enumerate(lines) if line.startswith(ending))
        page = replace(page, text="\n".join(lines[first:]))
    invocation.finish(page, settings.context)
