"""standby.release: give reserved standbys back to the pool."""

from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.contract import ActionResult, Observation, Site, owner_mark
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments


class StandbyRelease:
    """See the head of this file."""

    async def observe(self, site: Site, args: Arguments) -> Observation:
        names = arguments.nodes(args, "nodes")
        reservations = await site.backend.reservations()
        held = [n for n in names if n in reservations and reservations[n].owner == owner_mark(site)]
        return Observation(not held, {"released": list(names)}, f"{fold(names)} free")

    async def plan(self, site: Site, args: Arguments) -> Sequence[Change]:
        if not arguments.is_known(args, "nodes"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "reserved -> standby"),)
        reservations = await site.backend.reservations()
        names = arguments.nodes(args, "nodes")
        return tuple(
            Change(Sign.ALTER, n, "reserved -> standby") for n in names if n in reservations
        )

    async def apply(self, site: Site, args: Arguments) -> ActionResult:
        names = arguments.nodes(args, "nodes")
        await site.backend.release(names, owner_mark(site))
        return ActionResult({"released": list(names)}, say=f"{fold(names)} free")

    async def undo(self, site: Site, args: Arguments) -> ActionResult:
        names = arguments.nodes(args, "nodes")
        back = [n for n in names if await site.backend.reserve(n, owner_mark(site), site.now())]
        return ActionResult({"nodes": back}, changed=bool(back), say=f"{fold(back)} reserved again")

    async def confirm(self, site: Site, args: Arguments) -> Observation:
        return await self.observe(site, args)
