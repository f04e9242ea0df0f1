"""job.hot_update: let the next start of a job take the code change that waits.

Only the record changes: the ranks are stopped before and started after by steps of their own, on
the nodes they have. A change named when the run was planned is applied and no other, so that
nobody's approval covers a change that came later.
"""

import asyncio
from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, FailureKind, Observation
from brctl.actions.job.code_copies import must_agree
from brctl.model.jobs.code import ChangeState, CodeChange
from brctl.model.jobs.job import Job
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments


class JobHotUpdate:
    """See the head of this file. With `may_wait: true` a change some node lacks goes on waiting."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        change = _requested_change(context, args)
        if change is None:
            return Observation(done=True, say="no code change waits")
        if change.state is ChangeState.PENDING:
            return Observation(done=False, say=f"{change.id} waits")
        return Observation(done=True, out=_out(change), say=f"{change.id} is {change.state}")

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        change = _requested_change(context, args)
        if change is None or change.state is not ChangeState.PENDING:
            return ()
        job = await context.jobs.get(arguments.text(args, "job"))
        now = job.code.version if job.code else ""
        what = f"{now} -> {change.version} ({change.id} by {change.by}: {change.why})"
        return (Change(Sign.ALTER, f"job {job.name} code", what),)

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        change = _requested_change(context, args)
        if change is None or change.state is not ChangeState.PENDING:
            return ActionResult(_out(change), changed=False, say="no code change waits")
        job = await context.jobs.get(arguments.text(args, "job"))
        _, lacking = await asyncio.gather(
            refuse_running(context, job), _why_lacking(context, job, change)
        )
        if lacking is not None and args.get("may_wait") is not True:
            raise lacking
        if lacking is not None:
            say = f"{change.id} goes on waiting: {lacking}"
            return ActionResult(_out(None), changed=False, say=say)
        done = context.jobs.code_ledger(job.name).apply(
            change.id, context.run.name, context.clock.now()
        )
        return ActionResult(_out(done), say=f"{done.id}: the ranks start from {done.version} next")

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        ledger = context.jobs.code_ledger(arguments.text(args, "job"))
        changed = ledger.undo_switches(context.run.name, context.clock.now())
        return ActionResult(
            changed=changed, say="the change waits again" if changed else "nothing to undo"
        )

    async def confirm(self, context: RunContext, args: Arguments) -> Observation:
        return (
            Observation(done=True)
            if args.get("may_wait") is True
            else await self.observe(context, args)
        )


async def refuse_running(context: RunContext, job: Job) -> None:
    """End here while ranks of the old code run: the record would say something else than is.

    Raises:
        ActionFailed: Names how many ranks are alive.
    """
    state = await context.backend.job_status(job)
    if state.alive:
        raise ActionFailed(f"job {job.name} still has {len(state.alive)} ranks; stop it first")


async def _why_lacking(context: RunContext, job: Job, change: CodeChange) -> ActionFailed | None:
    """Why the change cannot be taken; None where every node has its release as recorded."""
    if job.code is None:
        return ActionFailed(f"job {job.name} has no `code` in job.yaml", FailureKind.OTHER)
    code = context.jobs.code_ledger(job.name).read().code_of(job.code, change)
    try:
        await must_agree(context.sweeps, job, code, job.nodes)
    except ActionFailed as failed:
        return failed
    return None


def _requested_change(context: RunContext, args: Arguments) -> CodeChange | None:
    """The change the arguments name; None when they name none.

    Raises:
        ActionFailed: There is no such change.
    """
    name = arguments.text(args, "change", "")
    if not name:
        return None
    change = context.jobs.code_ledger(arguments.text(args, "job")).read().change(name)
    if change is None:
        raise ActionFailed(f"no code change {name!r} is on record")
    return change


def _out(change: CodeChange | None) -> Arguments:
    if change is None:
        return {"change": "", "version": ""}
    return {"change": change.id, "version": change.version}
