"""node.uncordon: put nodes back into service."""

from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionResult, Observation, VerbImplementation
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments


class NodeUncordon(VerbImplementation):
    """See the head of this file."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        names = arguments.nodes(args, "nodes")
        cordons = await context.backend.cordons()
        left = [name for name in names if name in cordons]
        return Observation(not left, {"uncordoned": list(names)}, f"{fold(names)} in service")

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        if not arguments.is_known(args, "nodes"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "cordoned -> schedulable"),)
        cordons = await context.backend.cordons()
        return tuple(
            Change(Sign.ALTER, name, f'cordoned "{cordons[name].reason}" -> schedulable')
            for name in arguments.nodes(args, "nodes")
            if name in cordons
        )

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        names = arguments.nodes(args, "nodes")
        before = [name for name in names if name in await context.backend.cordons()]
        await context.backend.uncordon(before)
        out = {"uncordoned": before}
        return ActionResult(out, changed=bool(before), say=f"{fold(before)} in service")

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        names = arguments.nodes(args, "nodes")
        await context.backend.cordon(
            names, context.owner_mark, "its return was undone", context.clock.now()
        )
        return ActionResult({"cordoned": list(names)}, say=f"{fold(names)} cordoned again")
