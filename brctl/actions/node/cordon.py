"""node.cordon: take nodes out of service, with the run's name and the reason."""

from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import (
    ActionFailed,
    ActionResult,
    FailureKind,
    Observation,
    VerbImplementation,
)
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments


class NodeCordon(VerbImplementation):
    """See the head of this file."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        names = arguments.nodes(args, "nodes")
        cordons = await context.backend.cordons()
        mine = [n for n in names if n in cordons and cordons[n].owner == context.owner_mark]
        others = [n for n in names if n in cordons and cordons[n].lasting and n not in mine]
        done = len(mine) + len(others) == len(names)
        return Observation(done, {"cordoned": mine, "already": others}, f"{fold(names)} cordoned")

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        if not arguments.is_known(args, "nodes"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "schedulable -> cordoned"),)
        cordons = await context.backend.cordons()
        reason = arguments.text(args, "reason")
        return tuple(
            Change(Sign.ALTER, name, f'schedulable -> cordoned "{reason}"')
            for name in arguments.nodes(args, "nodes")
            if name not in cordons or not cordons[name].lasting
        )

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        names, reason = arguments.nodes(args, "nodes"), arguments.text(args, "reason")
        before = await context.backend.cordons()
        await context.backend.cordon(names, context.owner_mark, reason, context.clock.now())
        seen = await self.observe(context, args)
        if not seen.done:
            raise ActionFailed(f"{fold(names)} is not cordoned", FailureKind.SCHEDULER)
        fresh = [name for name in names if name not in before or not before[name].lasting]
        return ActionResult(seen.out, changed=bool(fresh), say=seen.say)

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        cordons = await context.backend.cordons()
        mine = [
            name
            for name in arguments.nodes(args, "nodes")
            if name in cordons and cordons[name].owner == context.owner_mark
        ]
        await context.backend.uncordon(mine)
        return ActionResult(
            {"uncordoned": mine}, changed=bool(mine), say=f"{fold(mine)} uncordoned"
        )
