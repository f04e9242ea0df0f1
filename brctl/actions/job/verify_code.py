"""job.verify_code: every node has the release that is to be started, with the recorded content.

A look before the job is stopped: a copy that is missing would show at the start as well, but then
nothing runs.
"""

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, ReadOnly
from brctl.actions.job.code_copies import SHOWN, must_agree
from brctl.model.jobs.code import CodeChange
from brctl.model.runs.playbook import Arguments
from brctl.model.units import describe_duration
from brctl.playbook.code_changes import CodeRecord, is_due


class JobVerifyCode(ReadOnly):
    """Of the change that waits; with `rollback: true` of what was there before the newest one.

    With `only` a change of another kind is refused: `urgent`, or `due` (urgent, or waiting for
    longer than `window`).
    """

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        job = await context.jobs.get(arguments.text(args, "job"))
        if job.code is None:
            raise ActionFailed(f"job {job.name} has no `code` in job.yaml")
        record = context.jobs.code_ledger(job.name).read()
        if args.get("rollback") is True:
            change = record.previous
            if record.current is None:
                raise ActionFailed(f"no change of the code of job {job.name} is on record")
        else:
            change = _waiting(context, record, args)
        code = record.code_of(job.code, change)
        digest = await must_agree(context.sweeps, job, code, job.nodes)
        out: Arguments = {"version": code.version, "digest": digest}
        say = f"{len(job.nodes)} nodes have {code.version} ({digest[:SHOWN]})"
        return ActionResult(out, changed=False, say=say)


def _waiting(context: RunContext, record: CodeRecord, args: Arguments) -> CodeChange:
    change, only = record.pending, arguments.text(args, "only", "any")
    named = arguments.text(args, "change", "")
    if change is None or (named and named != change.id):
        raise ActionFailed(f"{named or 'no change'} of the code waits")
    window_s = arguments.seconds(args, "window", "24h")
    if only == "urgent" and not change.urgent:
        raise ActionFailed(f"{change.id} is not urgent")
    if only == "due" and not is_due(change, context.clock.now(), window_s):
        raise ActionFailed(f"{change.id} has not waited for {describe_duration(window_s)} yet")
    return change
