"""job.rollback_code: let the next start of a job take the code from before its newest change."""

from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, Observation, VerbImplementation
from brctl.actions.job.code_copies import must_agree
from brctl.actions.job.hot_update import refuse_running
from brctl.model.jobs.code import ChangeState, CodeChange
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments


class JobRollbackCode(VerbImplementation):
    """Only the record changes; stopping and starting are steps of their own."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        record = context.jobs.code_ledger(arguments.text(args, "job")).read()
        done = record.switched_by(context.run.name, ChangeState.ROLLED_BACK)
        if done is not None:
            return Observation(
                done=True, out=await _out(context, args, done), say=f"{done.id} is off"
            )
        return Observation(
            done=False, say=f"{record.current.id if record.current else 'nothing'} is on"
        )

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        change = _convicted(context, args)
        job = await context.jobs.get(arguments.text(args, "job"))
        if job.code is None:
            raise ActionFailed(f"job {job.name} has no `code` in job.yaml")
        before = context.jobs.code_ledger(job.name).read()
        back = before.code_of(job.code, before.previous)
        what = f"{change.version} -> {back.version} ({change.id} by {change.by}: {change.why})"
        return (Change(Sign.ALTER, f"job {job.name} code", what),)

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        job = await context.jobs.get(arguments.text(args, "job"))
        record, change = context.jobs.code_ledger(job.name).read(), _convicted(context, args)
        if job.code is None:
            raise ActionFailed(f"job {job.name} has no `code` in job.yaml")
        await refuse_running(context, job)
        back = record.code_of(job.code, record.previous)
        await must_agree(context.sweeps, job, back, job.nodes)
        done = context.jobs.code_ledger(job.name).roll_back(
            change.id, context.run.name, context.clock.now()
        )
        say = f"{done.id} ({done.why}, by {done.by}) is off; the ranks start from {back.version}"
        return ActionResult(await _out(context, args, done), say=say)

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        ledger = context.jobs.code_ledger(arguments.text(args, "job"))
        changed = ledger.undo_switches(context.run.name, context.clock.now())
        return ActionResult(
            changed=changed, say="the change is on again" if changed else "nothing to undo"
        )


def _convicted(context: RunContext, args: Arguments) -> CodeChange:
    """The newest applied change; the one the plan named, where it named one.

    Raises:
        ActionFailed: None is on record, or another one is the newest by now.
    """
    change = context.jobs.code_ledger(arguments.text(args, "job")).read().current
    named = arguments.text(args, "change", "")
    if change is None:
        raise ActionFailed("no code change is on record that could be rolled back")
    if named and named != change.id:
        raise ActionFailed(f"{named} is not the newest change any more, {change.id} is")
    return change


async def _out(context: RunContext, args: Arguments, change: CodeChange) -> Arguments:
    job = await context.jobs.get(arguments.text(args, "job"))
    version = job.code.version if job.code else ""
    return {"change": change.id, "version": version, "why": change.why, "by": change.by}
