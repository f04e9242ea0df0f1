"""Start, resume, approve and take back runs; every front end acts through here.

A run is started in a process of its own and followed through its journal.
"""

import asyncio
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from subprocess import DEVNULL

from brctl.actions.context import RunContext
from brctl.engine.runs.open_runs import refuse_second_run
from brctl.engine.runs.plan import Prepared, prepare, refuse_guarded
from brctl.engine.runs.read_run import read_run, read_runs
from brctl.engine.runs.run_files import (
    PLAN,
    PLAYBOOK,
    ApprovalAnswer,
    RunRequest,
    add_answer,
    load_request,
    plan_document,
    refuse_changed_playbook,
    save_inputs,
    save_request,
    write_json,
)
from brctl.engine.runs.wait import let_expire, overdue
from brctl.journal.locks import claiming
from brctl.journal.store import is_running, new_run, starting
from brctl.library.durable_files import private_dir, write_atomic
from brctl.library.own_program import own_program
from brctl.library.programs.child_start import start_detached
from brctl.library.programs.preloaded import DETACHED, PreloadedProcess
from brctl.model.errors import GuardError, LockedError, UsageError
from brctl.model.runs.playbook import Json, Playbook
from brctl.model.runs.result import RunState
from brctl.model.units import describe_duration, parse_rfc3339
from brctl.model.verdict import Verdict
from brctl.playbook.approvals import GroupsOf, agrees, read_demand, why_not_counted
from brctl.playbook.direction import Direction, direction_of, may_turn
from brctl.playbook.overrides import Override
from brctl.playbook.run import Run, UnreadableRun
from brctl.playbook.run_record import TAKEN_BACK
from brctl.playbook.steps import StepState

__all__ = ["prepare", "refuse_guarded"]

SAVED_PLAN_S = 1800.0
RUN_PROGRAM: Sequence[str] = own_program("brctl.engine.runs.process")


def create_run(context: RunContext, prepared: Prepared, request: RunRequest) -> Path:
    """The folder of a new run with everything its process needs; nothing runs yet.

    Raises:
        GuardError: A guard refuses; no folder is made.
    """
    refuse_guarded(prepared)
    run_dir = new_run(context.state_dir)
    private_dir(run_dir / "stdout")
    write_atomic(run_dir / PLAYBOOK, prepared.playbook.text)
    save_inputs(run_dir, prepared.inputs)
    write_json(run_dir / PLAN, plan_document(prepared.plan))
    save_request(run_dir, request)
    return run_dir


async def start_run(
    context: RunContext,
    prepared: Prepared,
    request: RunRequest,
    program: Sequence[str] = RUN_PROGRAM,
    preloaded: PreloadedProcess | None = None,
) -> Path:
    """Create a run and start its process, or give it to one; follow it with `journal.follow`.

    Raises:
        GuardError: A guard refuses, or another run for the same trouble is open.
    """
    inputs = prepared.inputs
    with claiming(context.state_dir):
        job = str(inputs.job.get("name") or "")
        refuse_second_run(context.state_dir, inputs.verdict_id, job)
        run_dir = create_run(context, prepared, request)
    await spawn(run_dir, program, preloaded)
    return run_dir


async def spawn(
    run_dir: Path,
    program: Sequence[str] = RUN_PROGRAM,
    preloaded: PreloadedProcess | None = None,
) -> None:
    """Start the process that owns a run, in a session of its own and as nobody's child.

    Raises:
        LockedError: One is running already.
    """
    if is_running(run_dir):
        raise LockedError(f"{run_dir.name} is running", hint=f"brctl play show {run_dir.name}")
    log = os.open(run_dir / "stdout" / "run.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        with starting(run_dir) as lock:
            if preloaded is not None and await preloaded.take(run_dir, lock, log):
                return
            process = await start_detached(
                asyncio.create_subprocess_exec(
                    *DETACHED,
                    *program,
                    str(run_dir),
                    str(lock),
                    stdin=DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=(lock,),
                )
            )
            await process.wait()
    finally:
        os.close(log)


async def resume(run_dir: Path, request: RunRequest, program: Sequence[str] = RUN_PROGRAM) -> None:
    """Let a run go on where its journal stands."""
    run = read_run(run_dir)
    refuse_changed_playbook(run_dir, run.playbook, run.events)
    save_request(run_dir, _same_context(run_dir, request))
    await spawn(run_dir, program)


async def expire_overdue(state_dir: Path, at: datetime) -> tuple[str, ...]:
    """Carry on with runs whose approval expired while no process was left to notice."""
    found = overdue(state_dir, at)
    for run_dir in found:
        let_expire(run_dir)
        await spawn(run_dir)
    return tuple(run_dir.name for run_dir in found)


def resume_direction(run: Run, *, undo: bool = False, forward: bool = False) -> Direction:
    """Which way this run would go on.

    Raises:
        UsageError: Forward was asked for where nothing was taken back, or is being taken back.
    """
    if forward and not may_turn(run.record):
        raise UsageError(
            f"--forward is for a run whose rollback ended before it was through; {run.name} is"
            f" {run.state}",
            hint=f"brctl play show {run.name}",
        )
    if undo:
        return Direction(forward=False)
    return direction_of(run.playbook, run.record, forward_asked=forward)


async def roll_back(
    run_dir: Path, request: RunRequest, program: Sequence[str] = RUN_PROGRAM
) -> None:
    """Take back what a run changed and nobody else changed since."""
    await resume(run_dir, replace(request, undo=True), program)


def _same_context(run_dir: Path, request: RunRequest) -> RunRequest:
    """The context is the one the run was started in; an override lasts, but only its hour."""
    first = load_request(run_dir)
    override = request.override or first.override
    return replace(
        request, context=first.context, config=first.config, override=override, also=first.also
    )


async def prepare_saved(
    context: RunContext,
    playbook: Playbook,
    saved: Mapping[str, Json],
    verdict: Verdict | None,
    override: Override | None = None,
) -> Prepared:
    """Plan again what was planned and saved; it must come out the same.

    Raises:
        GuardError: The playbook changed, the plan is too old, or the world moved.
    """
    inputs = saved.get("inputs")
    if saved.get("playbook_sha256") != playbook.sha256:
        raise GuardError(f"refused: {playbook.name} changed since it was planned")
    age_s = (context.clock.now() - parse_rfc3339(str(saved.get("planned_at")))).total_seconds()
    if age_s > SAVED_PLAN_S:
        limit = describe_duration(SAVED_PLAN_S)
        raise GuardError(f"refused: the plan is {describe_duration(age_s)} old, more than {limit}")
    values = inputs if isinstance(inputs, dict) else {}
    prepared = await prepare(context, playbook, verdict, values, override)
    if prepared.plan.digest != saved.get("digest"):
        raise GuardError(
            "refused: the world moved since the plan was saved. Nothing changed.",
            hint=f"look at what changed: brctl play plan {playbook.name}",
        )
    return prepared


def answer(
    context: RunContext, run_dir: Path, by: str, *, yes: bool, typed: str | None = None
) -> None:
    """Record one person's approval or denial; the run takes it up when it is resumed.

    Raises:
        UsageError: The run waits for nothing, or something else was typed.
        GuardError: This person's yes does not count here.
    """
    run = read_run(run_dir)
    refuse_changed_playbook(run_dir, run.playbook, run.events)
    if run.record.result is not RunState.WAITING:
        raise UsageError(f"{run.name} does not wait for an approval; it is {run.state}")
    if not run.record.question:
        raise UsageError(
            f"{run.name} asks nobody: {run.record.why}",
            hint=f"brctl play resume {run.name}, or brctl play rollback {run.name}",
        )
    problem = why_not_answer(run_dir, by, context.people.groups_of) if yes else None
    if problem:
        raise GuardError(
            f"refused: {problem}", hint=f"somebody else: brctl play approve {run.name}"
        )
    expected = run.asked("answer")
    if yes and typed is not None and not agrees(run.playbook, typed, expected):
        raise UsageError(f"type `{expected}` to approve, not `{typed}`")
    plan = run.asked("plan")
    add_answer(run_dir, ApprovalAnswer(by, context.clock.now(), plan, yes))


def why_not_answer(run_dir: Path, by: str, groups_of: GroupsOf) -> str | None:
    """Why this person's yes would not help a waiting run, or None when it would."""
    record = read_run(run_dir).record
    rows = record.question.get("demands")
    demands = [read_demand(row) for row in rows or () if isinstance(row, Mapping)]  # type: ignore[union-attr]  # a list, written by approving
    return why_not_counted(demands, by, record.started_by, groups_of)


def waiting_for(run_dir: Path) -> str:
    """What must be typed to approve a waiting run; "" when nothing was asked."""
    return read_run(run_dir).asked("answer")


def resume_lists(run: Run, *, forward: bool = False) -> Mapping[str, tuple[str, ...]]:
    """What a resume would not repeat, must look at, and has to do."""
    again = TAKEN_BACK if forward else ()
    return {
        "done": run.record.in_state(StepState.DONE, StepState.SKIPPED),
        "in_doubt": run.record.in_state(StepState.UNCERTAIN),
        "to_do": run.record.in_state(StepState.PENDING, StepState.FAILED, *again),
    }


def history(
    state_dir: Path, nodes: Collection[str] | None = None, by: str | None = None
) -> Iterator[Run | UnreadableRun]:
    """All runs, newest first; those that name one of these nodes, or of one person.

    What cannot be read may be any of them, so it is always among them.
    """
    for run in reversed(read_runs(state_dir)):
        if isinstance(run, Run):
            if nodes and not set(nodes) & set(run.nodes):
                continue
            if by and run.by != by:
                continue
        yield run
