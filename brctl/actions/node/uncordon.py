"""node.uncordon: put nodes back into service."""

from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.contract import ActionResult, Observation, Site, owner_mark
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments


class NodeUncordon:
    """See the head of this file."""

    async def observe(self, site: Site, args: Arguments) -> Observation:
        names = arguments.nodes(args, "nodes")
        cordons = await site.backend.cordons()
        left = [name for name in names if name in cordons]
        return Observation(not left, {"uncordoned": list(names)}, f"{fold(names)} in service")

    async def plan(self, site: Site, args: Arguments) -> Sequence[Change]:
        if not arguments.is_known(args, "nodes"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "cordoned -> schedulable"),)
        cordons = await site.backend.cordons()
        return tuple(
            Change(Sign.ALTER, name, f'cordoned "{cordons[name].reason}" -> schedulable')
            for name in arguments.nodes(args, "nodes")
            if name in cordons
        )

    async def apply(self, site: Site, args: Arguments) -> ActionResult:
        names = arguments.nodes(args, "nodes")
        before = [name for name in names if name in await site.backend.cordons()]
        await site.backend.uncordon(before)
        out = {"uncordoned": before}
        return ActionResult(out, changed=bool(before), say=f"{fold(before)} in service")

    async def undo(self, site: Site, args: Arguments) -> ActionResult:
        names = arguments.nodes(args, "nodes")
        await site.backend.cordon(names, owner_mark(site), "its return was undone", site.now())
        return ActionResult({"cordoned": list(names)}, say=f"{fold(names)} cordoned again")

    async def confirm(self, site: Site, args: Arguments) -> Observation:
        return await self.observe(site, args)
