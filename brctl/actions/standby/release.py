"""standby.release: give reserved standbys back to the pool."""

from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.contract import Done, Seen, Site, owner_mark
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments


class StandbyRelease:
    """See the head of this file."""

    async def observe(self, site: Site, given: Arguments) -> Seen:
        names = arguments.nodes(given, "nodes")
        reservations = await site.backend.reservations()
        held = [n for n in names if n in reservations and reservations[n].owner == owner_mark(site)]
        return Seen(not held, {"released": list(names)}, f"{fold(names)} free")

    async def plan(self, site: Site, given: Arguments) -> Sequence[Change]:
        if not arguments.is_known(given, "nodes"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "reserved -> standby"),)
        reservations = await site.backend.reservations()
        names = arguments.nodes(given, "nodes")
        return tuple(
            Change(Sign.ALTER, n, "reserved -> standby") for n in names if n in reservations
        )

    async def apply(self, site: Site, given: Arguments) -> Done:
        names = arguments.nodes(given, "nodes")
        await site.backend.release(names, owner_mark(site))
        return Done({"released": list(names)}, say=f"{fold(names)} free")

    async def undo(self, site: Site, given: Arguments) -> Done:
        names = arguments.nodes(given, "nodes")
        back = [n for n in names if await site.backend.reserve(n, owner_mark(site), site.now())]
        return Done({"nodes": back}, changed=bool(back), say=f"{fold(back)} reserved again")

    async def confirm(self, site: Site, given: Arguments) -> Seen:
        return await self.observe(site, given)
