"""A run is a process of its own: `python -m brctl.engine.run_process RUN_DIR`.

It owns its folder by a kernel lock, so closing a terminal, losing SSH or ending the TUI never stops
it, and two of them can never run the same run. Its exit code is the run's.
"""

import asyncio
import contextlib
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from brctl import __version__
from brctl.engine.executor import Ending, Executor
from brctl.engine.ground import Ground, WorldGround
from brctl.engine.run_files import (
    PLAN,
    PastResult,
    Request,
    frozen_playbook,
    load_inputs,
    load_request,
    read_json,
    save_result,
)
from brctl.engine.run_site import RunSite
from brctl.engine.wiring import open_world
from brctl.journal.locks import LEASE_S, Leases
from brctl.journal.store import Journal, owning, read_journal
from brctl.library.config import load_settings
from brctl.model.errors import BrctlError, LockedError
from brctl.model.event import EVENTS_VERSION, EventType
from brctl.model.exit_codes import ExitCode
from brctl.model.playbook import Playbook
from brctl.playbook.guards import lock_keys
from brctl.playbook.plan import nodes_named
from brctl.playbook.replay import RunRecord, replay
from brctl.playbook.steps import StepState

OpenGround = Callable[[Request], AbstractAsyncContextManager[Ground]]
OpenJournal = Callable[[Path], Journal]
_SIGNALS = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}


@asynccontextmanager
async def open_ground(request: Request) -> AsyncIterator[Ground]:
    """The context the run was started in, opened again."""
    config = Path(request.config) if request.config else None
    settings = load_settings(os.environ, request.context or None, config)
    async with open_world(settings) as world:
        yield WorldGround(world)


async def carry_out(
    run_dir: Path, open_ground: OpenGround = open_ground, open_journal: OpenJournal = Journal
) -> ExitCode:
    """Run, resume or roll back, as the request in the folder says."""
    request = load_request(run_dir)
    with owning(run_dir):
        async with open_ground(request) as ground:
            return await _carry_out(run_dir, request, ground, open_journal)


async def _carry_out(
    run_dir: Path, request: Request, ground: Ground, open_journal: OpenJournal
) -> ExitCode:
    playbook, inputs = frozen_playbook(run_dir), load_inputs(run_dir)
    recording = read_journal(run_dir)
    record = replay(playbook, recording.events)
    journal = open_journal(run_dir)
    digest = str(read_json(run_dir / PLAN)["digest"])
    site = RunSite(ground, run_dir.name, run_dir)
    executor = Executor(ground, playbook, inputs, request, digest, journal, record, site)
    started = ground.now()
    try:
        _open_journal(executor, playbook, record, request, recording.damage)
        keys = lock_keys(playbook, inputs.inputs)
        ending = await _with_lease(executor, ground, keys, run_dir.name)
        seconds = (ground.now() - started).total_seconds()
        save_result(
            run_dir,
            PastResult(
                run=run_dir.name,
                playbook=playbook.name,
                verdict=inputs.verdict_id,
                nodes=nodes_named(playbook, inputs.inputs),
                taken=executor.describe_taken(),
                job=str(inputs.job["name"]),
                by=request.by,
                result=ending.result,
                exit_code=int(ending.exit_code),
                seconds=round(seconds, 3),
                ended_at=ground.now(),
                steps={name: step.state.value for name, step in record.steps.items()},
            ),
        )
        executor.write(
            EventType.END,
            {"exit_code": int(ending.exit_code), "result": ending.result, "why": ending.why},
        )
    finally:
        journal.close()
    return ending.exit_code


def _open_journal(
    executor: Executor,
    playbook: Playbook,
    record: RunRecord,
    request: Request,
    damage: tuple[str, ...],
) -> None:
    if not record.started:
        executor.write(EventType.VERSION, {"events": EVENTS_VERSION, "brctl": __version__})
        executor.write(
            EventType.RUN_STARTED,
            {"playbook": playbook.name, "sha256": playbook.sha256, "by": request.by,
             "pid": os.getpid()},
        )  # fmt: skip
        return
    executor.write(
        EventType.RUN_RESUMED,
        {
            "by": request.by,
            "pid": os.getpid(),
            "in_doubt": list(record.in_state(StepState.UNCERTAIN)),
            "damage": list(damage),
        },
    )


async def _with_lease(
    executor: Executor, ground: Ground, keys: tuple[str, ...], run: str
) -> Ending:
    """Hold the leases while the steps run, and let go of them however it ends."""
    leases = Leases(ground.state_dir)
    try:
        executor.lease = leases.acquire(keys, run, ground.now())
    except LockedError as exc:
        return Ending("locked", ExitCode.LOCKED, str(exc))
    renewing = asyncio.create_task(_keep(executor, ground, leases))
    loop = asyncio.get_running_loop()
    for number, code in _SIGNALS.items():
        loop.add_signal_handler(number, _interrupt, executor, code)
    try:
        ending = await executor.run()
        await executor.run_hooks(ending)
    except LockedError as exc:
        # Fenced: another run holds our nodes now, so nothing more may be written or done.
        executor.lease = None
        return Ending("needs_human", ExitCode.NEEDS_HUMAN, str(exc))
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        if executor.lease is not None:
            leases.release(executor.lease)
            executor.lease = None
    return ending


def _interrupt(executor: Executor, code: ExitCode) -> None:
    """Once: finish the step and stop. Twice: stop now, the step stays in doubt."""
    if executor.interrupted is not None:
        os._exit(int(code))
    executor.interrupted = code


async def _keep(executor: Executor, ground: Ground, leases: Leases) -> None:
    while executor.lease is not None:
        await asyncio.sleep(LEASE_S / 3)
        with contextlib.suppress(LockedError):
            # A lost lease shows at the next write, where it can stop the run.
            leases.renew(executor.lease, ground.now())


def main(
    argv: list[str], open_ground: OpenGround = open_ground, open_journal: OpenJournal = Journal
) -> int:
    """Entry of the process; what goes wrong is in `run.log` beside the journal."""
    try:
        return int(asyncio.run(carry_out(Path(argv[0]), open_ground, open_journal)))
    except BrctlError as exc:
        print(f"error: {exc}", file=sys.stderr)  # noqa: T201 - the run's own log
        return int(exc.exit_code)
    except Exception:  # noqa: BLE001 - the last resort of this process
        traceback.print_exc()
        return int(ExitCode.BUG)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
