"""One fix for a verdict: decision tree, playbook, plan, start; for every front end the same."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from brctl.actions.context import RunContext
from brctl.engine.application.runs import find_playbook
from brctl.engine.controller.readonly import refuse_readonly
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.engine.runs.plan import Prepared, prepare
from brctl.engine.runs.propose import propose
from brctl.engine.runs.remediate import RUN_PROGRAM, start_run
from brctl.engine.runs.run_files import RunRequest
from brctl.library.config import Settings
from brctl.library.programs.preloaded import PreloadedProcess
from brctl.model.errors import GuardError, UsageError
from brctl.model.fault import Action, Branch
from brctl.model.runs.playbook import Json, Playbook
from brctl.model.runs.result import RunState
from brctl.model.verdict import Verdict
from brctl.playbook.approvals import YES, confirmation_text, needs_a_yes
from brctl.playbook.node_runs import split_instance
from brctl.playbook.overrides import Override
from brctl.playbook.proposals import why_not
from brctl.playbook.run import Run
from brctl.playbook.steps import StepState
from brctl.playbook.tree import branch_of
from brctl.verdict.gateways import said_through


@dataclass(frozen=True, slots=True)
class Fix:
    """What comes next for a verdict.

    Attributes:
        say: Why it is this playbook, in the decision tree's words.
    """

    verdict: Verdict
    playbook: Playbook
    say: str


@dataclass(frozen=True, slots=True)
class PlannedFix:
    """A fix that may be started.

    Attributes:
        words: What a person types to start it.
        command: The equal command line.
    """

    prepared: Prepared
    words: str
    command: str


def choose_fix(settings: Settings, stored: StoredVerdict, now_at: datetime) -> Fix:
    """The next playbook for a verdict, by the decision tree and what was tried already.

    Raises:
        GuardError: The verdict was closed, or its playbook does not fit how sure it is.
        UsageError: A person must act.
    """
    verdict = stored.verdict
    if stored.state in (VerdictState.DISMISSED, VerdictState.SUPERSEDED):
        raise GuardError(f"refused: {verdict.id} was {stored.state} ({stored.note})")
    move = propose(settings.state_dir, settings.context, verdict, now_at)
    if not move.playbook:
        raise UsageError(
            f"{verdict.id} ({verdict.fault}): a person must act; {move.say}",
            hint=f"brctl why {verdict.id}",
        )
    playbook = find_playbook(settings.library_dirs, move.playbook)
    problem = why_not(playbook, verdict)
    if problem:
        raise GuardError(
            f"refused: {problem}. Nothing changed.",
            hint=f"look again with `brctl dx`, or: brctl play run {playbook.name}"
            f" --verdict {verdict.id}",
        )
    through = said_through(verdict)
    return Fix(verdict, playbook, f"{move.say} ({through})" if through else move.say)


@dataclass(frozen=True, slots=True)
class JointFix:
    """One run for several verdicts.

    Attributes:
        first: What the run is for.
        values: Inputs of its playbook that differ from those of the first verdict alone.
        also: Ids of the other verdicts, which end with the run.
    """

    first: Fix
    values: Mapping[str, Json]
    also: tuple[str, ...]


def join_fixes(fixes: Sequence[Fix]) -> JointFix:
    """One run that does what all of them ask: one stop of the job, one restart.

    Raises:
        UsageError: They are about different jobs, or not all for one playbook.
    """
    first = fixes[0]
    if len(fixes) == 1:
        return JointFix(first, {}, ())
    wanted = {(fix.playbook.name, fix.verdict.job) for fix in fixes}
    takes = next(
        (name for name, i in first.playbook.inputs.items() if i.source == "verdict.suspects"), None
    )
    if len(wanted) > 1:
        ways = ", ".join(f"{fix.verdict.id} {fix.playbook.name}" for fix in fixes)
        raise UsageError(f"no one run does it: {ways}", hint=f"brctl fix {first.verdict.id}")
    others = fixes[1:]
    nodes = dict.fromkeys(node for fix in fixes for node in fix.verdict.nodes)
    values: dict[str, Json] = {takes: list(nodes)} if takes else {}
    if "reason" in first.playbook.inputs:
        values["reason"] = "; ".join(f"also {f.verdict.id} {f.verdict.title}" for f in others)
    return JointFix(first, values, tuple(fix.verdict.id for fix in others))


def may_come_again(verdict: Verdict) -> bool:
    """Whether its fix leaves the suspects where they are, so that they may do the same again."""
    keeps = branch_of(verdict.fault) is Branch.GROUP and verdict.action is Action.RESTART
    return keeps and bool(verdict.nodes)


def unproved(run: Run) -> bool:
    """Whether a run did all it was to do, and training did not come back: the fault stands."""
    failed = (split_instance(name)[0] for name in run.record.in_state(StepState.FAILED))
    waits = any(run.playbook.step(step).uses == "job.wait_progress" for step in failed)
    return run.state is RunState.NEEDS_HUMAN and bool(run.job) and waits


async def plan_fix(context: RunContext, fix: Fix, override: Override | None = None) -> PlannedFix:
    """Plan it for real; changes nothing."""
    prepared = await prepare(context, fix.playbook, fix.verdict, override=override)
    command = ["brctl", "fix", fix.verdict.id]
    if needs_a_yes(prepared.plan):
        return PlannedFix(prepared, YES, shlex.join([*command, "--yes"]))
    words = words_for(prepared)
    return PlannedFix(prepared, words, shlex.join([*command, "--confirm", words]))


def in_the_words_of(prepared: Prepared, request: RunRequest) -> RunRequest:
    """A request in which everything is said that is typed to start this plan."""
    if needs_a_yes(prepared.plan):
        return replace(request, yes=True)
    return replace(request, typed=words_for(prepared))


def words_for(prepared: Prepared) -> str:
    """What a person types to let it run, where a gate asks."""
    job = str(prepared.inputs.job.get("name") or "")
    return confirmation_text(prepared.playbook, len(prepared.plan.nodes), job)


async def start_planned(
    context: RunContext,
    settings: Settings,
    prepared: Prepared,
    request: RunRequest,
    program: Sequence[str] = RUN_PROGRAM,
    preloaded: PreloadedProcess | None = None,
) -> Path:
    """Start what was planned, in a process of its own; the run's folder.

    Raises:
        GuardError: The context is read-only, or a guard refuses; nothing was changed.
    """
    refuse_readonly(settings, action="run")
    return await start_run(context, prepared, request, program, preloaded)
