"""node.uncordon: put nodes back into service."""

from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.contract import Done, Seen, Site, owner_mark
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments


class NodeUncordon:
    """See the head of this file."""

    async def observe(self, site: Site, given: Arguments) -> Seen:
        names = arguments.nodes(given, "nodes")
        cordons = await site.backend.cordons()
        left = [name for name in names if name in cordons]
        return Seen(not left, {"uncordoned": list(names)}, f"{fold(names)} in service")

    async def plan(self, site: Site, given: Arguments) -> Sequence[Change]:
        if not arguments.is_known(given, "nodes"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "cordoned -> schedulable"),)
        cordons = await site.backend.cordons()
        return tuple(
            Change(Sign.ALTER, name, f'cordoned "{cordons[name].reason}" -> schedulable')
            for name in arguments.nodes(given, "nodes")
            if name in cordons
        )

    async def apply(self, site: Site, given: Arguments) -> Done:
        names = arguments.nodes(given, "nodes")
        before = [name for name in names if name in await site.backend.cordons()]
        await site.backend.uncordon(before)
        out = {"uncordoned": before}
        return Done(out, changed=bool(before), say=f"{fold(before)} in service")

    async def undo(self, site: Site, given: Arguments) -> Done:
        names = arguments.nodes(given, "nodes")
        await site.backend.cordon(names, owner_mark(site), "its return was undone", site.now())
        return Done({"cordoned": list(names)}, say=f"{fold(names)} cordoned again")

    async def confirm(self, site: Site, given: Arguments) -> Seen:
        return await self.observe(site, given)
