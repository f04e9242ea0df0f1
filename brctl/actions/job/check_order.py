"""job.check_order: the job's nodes stand as was looked at, and the other order is of the same ones.

A look before the job is stopped; without `after` a look at whether the job has the order it should.
"""

from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionResult, NothingDone, ReadOnly
from brctl.actions.job.order_ranks import refuse_other_nodes
from brctl.model.runs.plan import Change
from brctl.model.runs.playbook import Arguments


class JobCheckOrder(ReadOnly):
    """See the head of this file."""

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        """Nothing changes; what would be refused is said in the plan already."""
        if "after" in args:
            await self.apply(context, args)
        return ()

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        job = await context.jobs.get(arguments.text(args, "job"))
        before = arguments.nodes(args, "before")
        after = arguments.nodes(args, "after") if "after" in args else ()
        refuse_other_nodes(context, job, before, after or before)
        if before == after:
            raise NothingDone(f"job {job.name} has this rank order already")
        return ActionResult(changed=False, say=f"job {job.name} has the order that was looked at")
