"""job.stop: end every rank of a job; a node that does not answer is said aloud, not waited for."""

import asyncio
from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, FailureKind, NotUndoable, Observation
from brctl.model.errors import BrctlError
from brctl.model.jobs.job import Job
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments


class JobStop(NotUndoable):
    """See the head of this file. There is no undo: starting again is a step of its own."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        job = await _job(context, args)
        state = await context.backend.job_status(job)
        out: Arguments = {
            "stopped": list(state.gone),
            "killed": [],
            "unreachable": list(state.unreachable),
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
        return (Change(Sign.REMOVE, f"job {job.name}", f"stopped ({job.world_size} ranks)"),)

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        job = await _job(context, args)
        # Side by side: what the ranks wrote is there after they are gone, and dead nodes cost once.
        step, report = await asyncio.gather(
            _newest_step(context, job),
            context.backend.stop_job(job, arguments.seconds(args, "grace", "30s")),
        )
        if report.stuck:
            raise ActionFailed(f"ranks {list(report.stuck)} survive SIGKILL; reboot their nodes")
        if len(report.unreachable) == len(job.nodes):
            raise ActionFailed("no node of the job answers", FailureKind.TRANSPORT)
        out: Arguments = {
            "stopped": list(report.stopped),
            "killed": list(report.killed),
            "unreachable": list(report.unreachable),
            "step": step,
        }
        say = f"{len(report.stopped)} ranks stopped, {len(report.killed)} killed"
        if report.unreachable:
            say += f"; {fold(report.unreachable)} does not answer, its ranks count as lost"
        return ActionResult(out, say=say)


async def _job(context: RunContext, args: Arguments) -> Job:
    return await context.jobs.get(arguments.text(args, "job"))


async def _newest_step(context: RunContext, job: Job) -> int | None:
    """The step at which it stopped, which whoever starts it again has to pass; None if unknown."""
    try:
        return (await context.jobs.progress(job)).step
    except BrctlError:
        # A job has to be stopped also when nobody can say how far it came.
        return None
