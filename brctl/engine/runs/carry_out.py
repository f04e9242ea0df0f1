"""Carry a run out, in the process that owns it (`process.py`): run, resume or roll back."""

import asyncio
import contextlib
import os
import signal
import sqlite3
import sys
import traceback
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from pathlib import Path

from brctl import __version__
from brctl.actions.child import end_children
from brctl.actions.context import RunContext
from brctl.engine.controller.clock import now
from brctl.engine.controller.wiring import open_controller
from brctl.engine.incidents.notify_runs import RunNotifier
from brctl.engine.incidents.verdict_store import close_acted_on
from brctl.engine.runs.context import JournalledRun, for_run, run_context
from brctl.engine.runs.executor import Executor
from brctl.engine.runs.hooks import run_hooks
from brctl.engine.runs.journals.audited import audited_journal
from brctl.engine.runs.run_files import (
    PLAN,
    RunRequest,
    frozen_playbook,
    load_inputs,
    load_request,
    read_json,
    refuse_changed_playbook,
    save_result,
)
from brctl.engine.runs.session import Ending, RunSession
from brctl.journal.chain_key import own_key
from brctl.journal.locks import LEASE_S
from brctl.journal.store import Journal, owning, read_journal
from brctl.library.config import load_settings
from brctl.model.errors import BrctlError, LockedError
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.event import EVENTS_VERSION, EventType
from brctl.model.runs.playbook import Json
from brctl.model.runs.result import PastRun, RunState
from brctl.playbook.direction import may_turn
from brctl.playbook.guards import lock_keys
from brctl.playbook.node_runs import waves_of
from brctl.playbook.plan import nodes_named, suspects_in
from brctl.playbook.run_record import node_run_row, replay
from brctl.playbook.steps import StepState

OpenContext = Callable[[RunRequest], AbstractAsyncContextManager[RunContext]]
OpenJournal = Callable[[Path], Journal]
JUST_PLANNED_S = 10.0
"""The command that starts a run has read the inventory it was planned over."""

_SIGNALS = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}


@asynccontextmanager
async def open_context(request: RunRequest) -> AsyncIterator[RunContext]:
    """The context the run was started in, opened again."""
    config = Path(request.config) if request.config else None
    settings = load_settings(os.environ, request.context or None, config)
    at = now().timestamp()
    told = (at - JUST_PLANNED_S, at)
    async with open_controller(settings, patient=True, told=told) as controller:
        yield run_context(controller)


async def carry_out(
    run_dir: Path,
    open_context: OpenContext = open_context,
    open_journal: OpenJournal = audited_journal,
    lock: int | None = None,
) -> ExitCode:
    """Run, resume or roll back, as the request in the folder says.

    Args:
        run_dir: The run.
        open_context: Opens the context it was started in.
        open_journal: Opens its journal.
        lock: The descriptor by which whoever started this process held the run for it.
    """
    request, notifier = load_request(run_dir), RunNotifier(run_dir)
    try:
        with owning(run_dir):
            if lock is not None:
                os.close(lock)
            async with open_context(request) as context:
                notifier.started(context)
                return await _carry_out(run_dir, request, context, open_journal)
    finally:
        # Whoever resumes the run need not wait until people are told how this part of it ended.
        await notifier.ended()


async def _carry_out(
    run_dir: Path, request: RunRequest, context: RunContext, open_journal: OpenJournal
) -> ExitCode:
    playbook, inputs = frozen_playbook(run_dir), load_inputs(run_dir)
    recording = read_journal(run_dir, own_key())
    refuse_changed_playbook(run_dir, playbook, recording.events)
    record = replay(playbook, recording.events)
    journal = open_journal(run_dir)
    digest = str(read_json(run_dir / PLAN)["digest"])

    def write_note(text: str) -> None:
        session.write(EventType.NOTE, {"text": text})

    run = JournalledRun(context, run_dir, write_note=write_note)
    context = for_run(context, run)
    session = RunSession(context, run, playbook, inputs, request, digest, journal, record)
    started = context.clock.now()
    try:
        _open_journal(session, recording.damage)
        _wait_less_for_silent(session)
        keys = lock_keys(playbook, inputs.inputs)
        ending = await _with_lease(session, keys)
        save_result(run_dir, _past_run(session, ending, started))
        for verdict_id in (
            (inputs.verdict_id, *request.also) if ending.result is RunState.OK else ()
        ):
            close_acted_on(context.state_dir, verdict_id, run_dir.name, started)
        session.write(
            EventType.END,
            {"exit_code": int(ending.exit_code), "result": ending.result, "why": ending.why},
        )
    finally:
        journal.close()
    return ending.exit_code


def _wait_less_for_silent(session: RunSession) -> None:
    """What sweeps wrote of the suspects saves seconds; a run goes on where it cannot be read."""
    try:
        session.context.nodes.wait_less_for_silent(suspects_in(session.inputs.verdict))
    except (sqlite3.Error, zlib.error, OSError, ValueError) as exc:
        text = f"waits in full for silent nodes: the index of sweeps cannot be read: {exc}"
        session.write(EventType.NOTE, {"text": text})


def _past_run(session: RunSession, ending: Ending, started_at: datetime) -> PastRun:
    inputs, record, ended_at = session.inputs, session.record, session.context.clock.now()
    return PastRun(
        run=session.run.name,
        playbook=session.playbook.name,
        verdict=inputs.verdict_id,
        nodes=nodes_named(session.playbook, inputs.inputs),
        taken=session.taken(),
        job=str(inputs.job["name"]),
        by=session.request.by,
        result=ending.result,
        exit_code=int(ending.exit_code),
        seconds=round((ended_at - started_at).total_seconds(), 3),
        ended_at=ended_at,
        steps={name: step.state.value for name, step in record.steps.items()},
        node_runs={
            node: node_run_row(node_run) for node, node_run in record.node_runs.items() if node
        },
    )


def _open_journal(session: RunSession, damage: tuple[str, ...]) -> None:
    if not session.record.started:
        session.write(EventType.VERSION, {"events": EVENTS_VERSION, "brctl": __version__})
        session.write(
            EventType.RUN_STARTED,
            {
                "playbook": session.playbook.name,
                "sha256": session.playbook.sha256,
                "by": session.request.by,
                "pid": os.getpid(),
                **_waves(session),
            },
        )
        return
    session.write(
        EventType.RUN_RESUMED,
        {
            "by": session.request.by,
            "pid": os.getpid(),
            "forward": session.request.forward and may_turn(session.record),
            "in_doubt": list(session.record.in_state(StepState.UNCERTAIN)),
            "damage": list(damage),
        },
    )


def _waves(session: RunSession) -> dict[str, Json]:
    """The nodes of `for_each` as they are chosen now; a resumed run keeps to them."""
    if session.playbook.for_each is None:
        return {}
    return {"waves": [list(wave) for wave in waves_of(session.playbook, session.scope())]}


async def _with_lease(session: RunSession, keys: tuple[str, ...]) -> Ending:
    """Hold the leases while the steps run, and let go of them however it ends."""
    executor = Executor(session)
    try:
        session.lease = session.leases.acquire(keys, session.run.name, session.context.clock.now())
    except LockedError as exc:
        return Ending(RunState.LOCKED, str(exc))
    renewing = asyncio.create_task(_keep(session))
    loop = asyncio.get_running_loop()
    for number, code in _SIGNALS.items():
        loop.add_signal_handler(number, _interrupt, executor, code)
    try:
        ending = await executor.run()
        await run_hooks(session, ending)
    except LockedError as exc:
        # Fenced: another run holds our nodes now, so nothing more may be written or done.
        session.lease = None
        return Ending(RunState.NEEDS_HUMAN, str(exc))
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        if session.lease is not None:
            session.leases.release(session.lease)
            session.lease = None
    return ending


def _interrupt(executor: Executor, code: ExitCode) -> None:
    """Once: finish the step and stop. Twice: stop now, the step stays in doubt."""
    if executor.stop.interrupted is not None:
        end_children()
        os._exit(int(code))
    executor.stop.interrupted = code


async def _keep(session: RunSession) -> None:
    while session.lease is not None:
        await asyncio.sleep(LEASE_S / 3)
        with contextlib.suppress(LockedError, OSError):
            # A lost lease shows at the next write, where it can stop the run.
            session.leases.renew(session.lease, session.context.clock.now())


def main(
    argv: list[str],
    open_context: OpenContext = open_context,
    open_journal: OpenJournal = audited_journal,
) -> int:
    """The exit code of the run; what goes wrong is in `run.log` beside the journal."""
    try:
        lock = int(argv[1]) if len(argv) > 1 else None
        return int(asyncio.run(carry_out(Path(argv[0]), open_context, open_journal, lock)))
    except BrctlError as exc:
        print(f"error: {exc}", file=sys.stderr)  # noqa: T201 - the run's own log
        return int(exc.exit_code)
    except OSError as exc:
        print(f"error: {exc}; the run can be resumed", file=sys.stderr)  # noqa: T201 - as above
        return int(ExitCode.UNAVAILABLE)
    except Exception:  # noqa: BLE001 - the last resort of this process
        traceback.print_exc()
        return int(ExitCode.BUG)
