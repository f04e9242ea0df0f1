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
        own = [n for n in names if n in cordons and cordons[n].owner == context.owner_mark]
        others = [n for n in names if n in cordons and cordons[n].lasting and n not in own]
        done = len(own) + len(others) == len(names)
        return Observation(done, {"cordoned": own, "already": others}, f"{fold(names)} cordoned")

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        if not arguments.is_known(args, "nodes"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "schedulable -> cordoned"),)
        cordons = await context.backend.cordons()
        reason = arguments.text(args, "reason").strip()
        return tuple(
            Change(Sign.ALTER, name, f'schedulable -> cordoned "{reason}"')
            for name in arguments.nodes(args, "nodes")
            if name not in cordons or not cordons[name].lasting
        )

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        names, reason = arguments.nodes(args, "nodes"), arguments.text(args, "reason").strip()
        before = await context.backend.cordons()
        await context.backend.cordon(names, context.owner_mark, reason, context.clock.now())
        observation = await self.observe(context, args)
        if not observation.done:
            raise ActionFailed(f"{fold(names)} is not cordoned", FailureKind.SCHEDULER)
        fresh = [name for name in names if name not in before or not before[name].lasting]
        return ActionResult(observation.out, changed=bool(fresh), say=observation.say)

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        cordons = await context.backend.cordons()
        own = [
            name
            for name in arguments.nodes(args, "nodes")
            if name in cordons and cordons[name].owner == context.owner_mark
        ]
        await context.backend.uncordon(own)
        return ActionResult({"uncordoned": own}, changed=bool(own), say=f"{fold(own)} uncordoned")
