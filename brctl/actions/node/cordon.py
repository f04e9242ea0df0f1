"""node.cordon: take nodes out of service, with the run's name and the reason."""

from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.contract import ActionFailed, Done, FailureKind, Seen, Site, owner_mark
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments


class NodeCordon:
    """See the head of this file."""

    async def observe(self, site: Site, given: Arguments) -> Seen:
        names = arguments.nodes(given, "nodes")
        cordons = await site.backend.cordons()
        mine = [n for n in names if n in cordons and cordons[n].owner == owner_mark(site)]
        others = [n for n in names if n in cordons and cordons[n].lasting and n not in mine]
        done = len(mine) + len(others) == len(names)
        return Seen(done, {"cordoned": mine, "already": others}, f"{fold(names)} cordoned")

    async def plan(self, site: Site, given: Arguments) -> Sequence[Change]:
        if not arguments.is_known(given, "nodes"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "schedulable -> cordoned"),)
        cordons = await site.backend.cordons()
        reason = arguments.text(given, "reason")
        return tuple(
            Change(Sign.ALTER, name, f'schedulable -> cordoned "{reason}"')
            for name in arguments.nodes(given, "nodes")
            if name not in cordons or not cordons[name].lasting
        )

    async def apply(self, site: Site, given: Arguments) -> Done:
        names, reason = arguments.nodes(given, "nodes"), arguments.text(given, "reason")
        before = await site.backend.cordons()
        await site.backend.cordon(names, owner_mark(site), reason, site.now())
        seen = await self.observe(site, given)
        if not seen.done:
            raise ActionFailed(f"{fold(names)} is not cordoned", FailureKind.SCHEDULER)
        fresh = [name for name in names if name not in before or not before[name].lasting]
        return Done(seen.out, changed=bool(fresh), say=seen.say)

    async def undo(self, site: Site, given: Arguments) -> Done:
        cordons = await site.backend.cordons()
        mine = [
            name
            for name in arguments.nodes(given, "nodes")
            if name in cordons and cordons[name].owner == owner_mark(site)
        ]
        await site.backend.uncordon(mine)
        return Done({"uncordoned": mine}, changed=bool(mine), say=f"{fold(mine)} uncordoned")

    async def confirm(self, site: Site, given: Arguments) -> Seen:
        return await self.observe(site, given)
