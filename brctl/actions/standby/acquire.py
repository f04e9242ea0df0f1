"""standby.acquire: put standbys aside and admit them; a failing one is cordoned, the next tried.

Where the pool is too small, only the shortfall comes from elsewhere: idle ordinary nodes. They were
not tested as the standbys were, so they pass the standbys' own self-checks first.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, Observation
from brctl.actions.standby.by_place import EmptyPlaces, empty_places
from brctl.actions.standby.code import judge_code
from brctl.model.command import Outcome
from brctl.model.jobs.job import Job
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments
from brctl.model.sweeps.sweep import Health, NodeHealth

ADMISSION_LEVEL = 1
SPARE_ADMISSION_LEVEL = 2


@dataclass(frozen=True, slots=True)
class Candidates:
    """Nodes nobody uses, in the order they are tried; this run's own reservations come first.

    Attributes:
        standbys: Of the pool, the best prepared for the job in front.
        spares: Idle ordinary nodes, for the shortfall.
    """

    standbys: tuple[str, ...]
    spares: tuple[str, ...]

    @property
    def in_order(self) -> tuple[str, ...]:
        return (*self.standbys, *self.spares)

    def without(self, nodes: Collection[str]) -> "Candidates":
        """The others."""
        standbys, spares = (
            tuple(node for node in some if node not in nodes)
            for some in (self.standbys, self.spares)
        )
        return Candidates(standbys, spares)


async def find_candidates(
    context: RunContext, job: str = "", only: Sequence[str] = ()
) -> Candidates:
    """Who could take a place now; of those named in `only`, in that order, where some are.

    A standby that the inventory no longer lists cannot be asked anything.
    """
    if only:
        every = await find_candidates(context, job)
        chosen = [tuple(n for n in only if n in some) for some in (every.standbys, every.spares)]
        return Candidates(chosen[0], chosen[1])
    taken: dict[str, object] = {**await context.backend.cordons()}
    taken |= {node: each for each in await context.jobs.all() for node in each.nodes}
    reservations = await context.backend.reservations()
    own = [n for n, r in reservations.items() if r.owner == context.owner_mark and n not in taken]
    pool = [n for n in context.standbys.best_first(job) if n in context.inventory.nodes]
    idle = await context.backend.idle_nodes(await _carried_by(context, job))
    free = [n for n in (*pool, *idle) if n not in taken and n not in reservations]
    first = [n for n in own if n in pool or n not in idle]
    standbys = dict.fromkeys([*first, *(n for n in free if n in pool)])
    spares = dict.fromkeys([*own, *free])
    return Candidates(tuple(standbys), tuple(n for n in spares if n not in standbys))


async def _carried_by(context: RunContext, job: str) -> Job | None:
    return await context.jobs.get(job) if job else None


async def _by_place(
    context: RunContext, found: Candidates, places: EmptyPlaces | None
) -> Candidates:
    """The same candidates; of equals those in front that stand where the lost nodes stood."""
    if places is None:
        return found
    reservations = await context.backend.reservations()
    held = [n for n, r in reservations.items() if r.owner == context.owner_mark]
    standbys = places.in_order(found.standbys, held)
    spares = places.without(standbys).in_order(found.spares, held)
    return Candidates(standbys, spares)


def _paired(done: ActionResult, places: EmptyPlaces | None) -> ActionResult:
    """The nodes in the order of those they replace, and what that does to the job's groups."""
    if places is None:
        return done
    nodes = places.paired(arguments.nodes(done.out, "nodes"))
    remark = places.remark(nodes)
    say = done.say + (f"; {remark}" if remark else "")
    return replace(done, out={**done.out, "nodes": list(nodes)}, say=say)


async def free_standbys(context: RunContext) -> tuple[str, ...]:
    """Standbys nobody uses, the best prepared first; this run's own reservations first."""
    return (await find_candidates(context)).standbys


class StandbyAcquire:
    """See the head of this file."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        """Reserved is not admitted: a run that died in between examines the standby again."""
        return Observation(done=False)

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        if not arguments.is_known(args, "count"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "standby -> reserved"),)
        wanted = arguments.count(args, "count")
        places = await empty_places(context, args)
        found = await find_candidates(context, arguments.text(args, "job", ""), _only(args))
        found = await _by_place(context, found, places)
        changes = [
            Change(Sign.ALTER, name, "standby -> reserved", name)
            if name in found.standbys
            else Change(Sign.ALTER, name, "idle, no standby -> reserved for the shortfall", name)
            for name in found.in_order[:wanted]
        ]
        missing = wanted - len(changes)
        if missing > 0:
            changes.append(Change(Sign.ALTER, f"{missing} standbys", "needed but none is free"))
        elif places and (remark := places.remark(places.paired(found.in_order[:wanted]))):
            changes.append(Change(Sign.ALTER, "placement", remark))
        return tuple(changes)

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        wanted, job = arguments.count(args, "count"), arguments.text(args, "job", "")
        admitted: list[str] = []
        doubtful: list[str] = []
        rejected: list[str] = []
        places = await empty_places(context, args)
        while len(admitted) < wanted:
            found = await find_candidates(context, job, _only(args))
            left = found.without({*admitted, *doubtful, *rejected})
            found = await _by_place(context, left, places and places.without(admitted))
            free = found.in_order[: wanted - len(admitted)]
            if not free:
                break
            examined = await self._examine(context, free, found)
            for health in await judge_code(context, job, examined):
                if health.health is Health.OK:
                    admitted.append(health.node)
                elif _only_gaps(health):
                    doubtful.append(health.node)
                else:
                    rejected.append(health.node)
                    await reject(context, health)
        done = await self._choose(context, wanted, admitted, doubtful, rejected)
        return await self._name_spares(context, _paired(done, places))

    async def _name_spares(self, context: RunContext, done: ActionResult) -> ActionResult:
        """Say which of the chosen are no standbys."""
        idle, pool = await context.backend.idle_nodes(), context.standbys.best_first()
        spares = [n for n in arguments.nodes(done.out, "nodes") if n in idle and n not in pool]
        say = f"; {fold(spares)} no standby but idle, for the shortfall" if spares else ""
        return replace(done, out={**done.out, "spares": spares}, say=done.say + say)

    async def _choose(
        self,
        context: RunContext,
        wanted: int,
        admitted: list[str],
        doubtful: list[str],
        rejected: list[str],
    ) -> ActionResult:
        """Fill up with standbys that could not be measured fully: said aloud, and only then."""
        needed = wanted - len(admitted)
        taken, spare = doubtful[:needed], doubtful[needed:]
        await context.backend.release(spare, context.owner_mark)
        if len(taken) < needed:
            raise ActionFailed(_shortfall(wanted, [*admitted, *taken], rejected))
        nodes = [*admitted, *taken]
        say = f"{fold(nodes)} reserved"
        say += f", {fold(rejected)} rejected" if rejected else ""
        say += f"; not every check of {fold(taken)} gave an answer" if taken else ""
        out: Arguments = {"nodes": nodes, "rejected": rejected, "doubtful": taken}
        return ActionResult(out, say=say)

    async def _examine(
        self, context: RunContext, names: Sequence[str], found: Candidates
    ) -> Sequence[NodeHealth]:
        reserved = [
            n
            for n in names
            if await context.backend.reserve(n, context.owner_mark, context.clock.now())
        ]
        levels = {n: ADMISSION_LEVEL for n in reserved if n in found.standbys}
        examined: list[NodeHealth] = []
        for level in (ADMISSION_LEVEL, SPARE_ADMISSION_LEVEL):
            some = [n for n in reserved if levels.get(n, SPARE_ADMISSION_LEVEL) == level]
            examined += await context.sweeps.examine(some, level) if some else ()
        return examined

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        reservations = await context.backend.reservations()
        own = [name for name, r in reservations.items() if r.owner == context.owner_mark]
        await context.backend.release(own, context.owner_mark)
        return ActionResult({"released": own}, changed=bool(own), say=f"{fold(own)} released")

    async def confirm(self, context: RunContext, args: Arguments) -> Observation:
        reservations = await context.backend.reservations()
        own = [name for name, r in reservations.items() if r.owner == context.owner_mark]
        return Observation(len(own) >= arguments.count(args, "count"), say=f"{fold(own)} reserved")


def _only(args: Arguments) -> Sequence[str]:
    """The nodes a person named; empty where the best ones are taken."""
    return arguments.nodes(args, "only") if args.get("only") else ()


async def reject(context: RunContext, health: NodeHealth) -> None:
    """A standby that is not known to be well is of no use to the next run either."""
    why = next((e.text for e in health.evidence if e.fault is not None), health.report.detail)
    reason = f"{context.run.name}: failed admission to a job: {why or health.health.value}"
    await context.backend.cordon([health.node], context.owner_mark, reason, context.clock.now())
    await context.backend.release([health.node], context.owner_mark)


def _only_gaps(health: NodeHealth) -> bool:
    """It answered and nothing speaks against it, but some check gave no answer."""
    answered = health.report.outcome is Outcome.ANSWERED
    return answered and health.health is Health.UNKNOWN and bool(health.evidence)


def _shortfall(wanted: int, admitted: Sequence[str], rejected: Sequence[str]) -> str:
    failed = f"; {fold(rejected)} failed admission" if rejected else ""
    return f"{wanted} standbys needed, {len(admitted)} admitted, no other node is free{failed}"
