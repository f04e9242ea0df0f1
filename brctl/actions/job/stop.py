"""job.stop: end every rank of a job; who does not answer or says its ranks live on is said aloud.

No node holds up the stop of the others: what one says of its own ranks can be a lie, and a start on
it is refused while it says so. Only where no node shows an ended rank has the stop failed.
"""

import asyncio
from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, FailureKind, NotUndoable, Observation
from brctl.backends.contract import StopReport
from brctl.model.errors import BrctlError
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import JobRunState
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments
from brctl.playbook.verbs import UNCONFIRMED


class JobStop(NotUndoable):
    """See the head of this file. There is no undo: starting again is a step of its own."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        job = await _job(context, args)
        state = await context.backend.job_status(job)
        out: Arguments = {
            "stopped": list(state.gone),
            "killed": [],
            "unreachable": list(state.unreachable),
            UNCONFIRMED: list(state.unreachable),
        }
        if not state.alive:
            out = {**out, "step": await _newest_step(context, job)}
        if not state.alive and not state.gone and not state.held:
            return Observation(None, say="no node of the job answers")
        silent = f"; {fold(state.unreachable)} does not answer" if state.unreachable else ""
        held = f"; {state.held}" if state.held else ""
        stopped = not state.alive and not state.held
        where = (
            f" on {fold(sorted({job.node_of(rank) for rank in state.alive}))}" if state.gone else ""
        )
        alive = f"{len(state.alive)} ranks alive{where if state.alive else ''}"
        return Observation(stopped, out, f"{alive}{silent}{held}")

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        job = await _job(context, args)
        await context.backend.must_control(job, "stopped")
        return (Change(Sign.REMOVE, f"job {job.name}", f"stopped ({job.world_size} ranks)"),)

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        job = await _job(context, args)
        # Side by side: what the ranks wrote is there after they are gone, and dead nodes cost once.
        step, (report, state) = await asyncio.gather(
            _newest_step(context, job),
            _stop(context, job, arguments.seconds(args, "grace", "30s")),
        )
        alive = sorted({*report.stuck, *state.alive})
        _must_show(job, report, state, alive)
        living = dict.fromkeys(job.node_of(rank) for rank in alive)
        out: Arguments = {
            "stopped": [rank for rank in report.stopped if rank not in alive],
            "killed": [rank for rank in report.killed if rank not in alive],
            "unreachable": list(report.unreachable),
            UNCONFIRMED: list(dict.fromkeys([*report.unreachable, *living])),
            "step": step,
        }
        say = f"{len(report.stopped)} ranks stopped, {len(report.killed)} killed"
        if report.unreachable:
            say += f"; {fold(report.unreachable)} does not answer, its ranks count as lost"
        if alive:
            say += (
                f"; ranks {alive} live on, says {fold(living)}; reboot it before it is used again"
            )
        return ActionResult(out, say=say)

    async def confirm(self, context: RunContext, args: Arguments) -> Observation:
        """`apply` looks last, node by node, and fails when what it sees is no stop."""
        return Observation(done=True)


async def _stop(context: RunContext, job: Job, grace_s: float) -> tuple[StopReport, JobRunState]:
    """Stop the ranks, then look at what is left of them."""
    report = await context.backend.stop_job(job, grace_s)
    return report, await context.backend.job_status(job)


def _must_show(job: Job, report: StopReport, state: JobRunState, alive: Sequence[int]) -> None:
    """Some node shows that its ranks have ended, and the scheduler has let the job go."""
    if state.held:
        raise ActionFailed(f"was done but does not show: {state.held}")
    if alive and not set(state.gone) - set(alive):
        raise ActionFailed(f"ranks {alive} survive SIGKILL; reboot their nodes")
    if len(report.unreachable) == len(job.nodes) or not state.gone:
        raise ActionFailed("no node of the job answers", FailureKind.TRANSPORT)


async def _job(context: RunContext, args: Arguments) -> Job:
    return await context.jobs.get(arguments.text(args, "job"))


async def _newest_step(context: RunContext, job: Job) -> int | None:
    """The step at which it stopped, which whoever starts it again has to pass; None if unknown."""
    try:
        return (await context.jobs.progress(job)).step
    except BrctlError:
        # A job has to be stopped also when nobody can say how far it came.
        return None
