"""standby.acquire: put standbys aside and admit them; a failing one is cordoned, the next tried."""

from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.contract import ActionFailed, Done, Seen, Site, owner_mark
from brctl.model.answer import Outcome
from brctl.model.nodeset import fold
from brctl.model.plan import Change, Sign
from brctl.model.playbook import Arguments
from brctl.model.sweep import Health, NodeHealth

ADMISSION_LEVEL = 1


async def free_standbys(site: Site) -> tuple[str, ...]:
    """Standbys nobody uses, the best prepared first; this run's own reservations first."""
    cordons = await site.backend.cordons()
    reservations = await site.backend.reservations()
    in_use = {node for job in await site.jobs() for node in job.nodes}
    mine = [name for name, r in reservations.items() if r.owner == owner_mark(site)]
    free = [
        name
        for name in site.standbys()
        if name not in cordons and name not in in_use and name not in reservations
    ]
    return tuple(dict.fromkeys([*(n for n in mine if n not in in_use | cordons.keys()), *free]))


class StandbyAcquire:
    """See the head of this file."""

    async def observe(self, site: Site, given: Arguments) -> Seen:
        """Reserved is not admitted: a run that died in between examines the standby again."""
        return Seen(done=False)

    async def plan(self, site: Site, given: Arguments) -> Sequence[Change]:
        if not arguments.is_known(given, "count"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "standby -> reserved"),)
        wanted, free = arguments.count(given, "count"), await free_standbys(site)
        changes = [Change(Sign.ALTER, name, "standby -> reserved") for name in free[:wanted]]
        missing = wanted - len(changes)
        if missing > 0:
            changes.append(Change(Sign.ALTER, f"{missing} standbys", "needed but none is free"))
        return tuple(changes)

    async def apply(self, site: Site, given: Arguments) -> Done:
        wanted = arguments.count(given, "count")
        admitted: list[str] = []
        doubtful: list[str] = []
        rejected: list[str] = []
        while len(admitted) < wanted:
            looked_at = {*admitted, *doubtful, *rejected}
            free = [n for n in await free_standbys(site) if n not in looked_at]
            if not free:
                break
            for health in await self._examine(site, free[: wanted - len(admitted)]):
                if health.health is Health.OK:
                    admitted.append(health.node)
                elif _only_gaps(health):
                    doubtful.append(health.node)
                else:
                    rejected.append(health.node)
                    await self._reject(site, health)
        return await self._choose(site, wanted, admitted, doubtful, rejected)

    async def _choose(
        self, site: Site, wanted: int, admitted: list[str], doubtful: list[str], rejected: list[str]
    ) -> Done:
        """Fill up with standbys that could not be measured fully: said aloud, and only then."""
        needed = wanted - len(admitted)
        taken, spare = doubtful[:needed], doubtful[needed:]
        await site.backend.release(spare, owner_mark(site))
        if len(taken) < needed:
            raise ActionFailed(_shortfall(wanted, [*admitted, *taken], rejected))
        nodes = [*admitted, *taken]
        say = f"{fold(nodes)} reserved"
        say += f", {fold(rejected)} rejected" if rejected else ""
        say += f"; not every check of {fold(taken)} gave an answer" if taken else ""
        out: Arguments = {"nodes": nodes, "rejected": rejected, "doubtful": taken}
        return Done(out, say=say)

    async def _examine(self, site: Site, names: Sequence[str]) -> Sequence[NodeHealth]:
        reserved = [n for n in names if await site.backend.reserve(n, owner_mark(site), site.now())]
        return await site.examine(reserved, ADMISSION_LEVEL) if reserved else ()

    async def _reject(self, site: Site, health: NodeHealth) -> None:
        """A standby that is not known to be well is of no use to the next run either."""
        why = next((e.text for e in health.evidence if e.fault is not None), health.report.detail)
        reason = f"{site.run}: failed admission as a standby: {why or health.health.value}"
        await site.backend.cordon([health.node], owner_mark(site), reason, site.now())
        await site.backend.release([health.node], owner_mark(site))

    async def undo(self, site: Site, given: Arguments) -> Done:
        reservations = await site.backend.reservations()
        mine = [name for name, r in reservations.items() if r.owner == owner_mark(site)]
        await site.backend.release(mine, owner_mark(site))
        return Done({"released": mine}, changed=bool(mine), say=f"{fold(mine)} released")

    async def confirm(self, site: Site, given: Arguments) -> Seen:
        reservations = await site.backend.reservations()
        mine = [name for name, r in reservations.items() if r.owner == owner_mark(site)]
        return Seen(len(mine) >= arguments.count(given, "count"), say=f"{fold(mine)} reserved")


def _only_gaps(health: NodeHealth) -> bool:
    """It answered and nothing speaks against it, but some check gave no answer."""
    answered = health.report.outcome is Outcome.ANSWERED
    return answered and health.health is Health.UNKNOWN and bool(health.evidence)


def _shortfall(wanted: int, admitted: Sequence[str], rejected: Sequence[str]) -> str:
    failed = f"; {fold(rejected)} failed admission" if rejected else ""
    return f"{wanted} standbys needed, {len(admitted)} admitted, no other is free{failed}"
