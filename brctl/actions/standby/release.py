"""standby.release: give reserved standbys back to the pool."""

from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionResult, Observation, VerbImplementation
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments


class StandbyRelease(VerbImplementation):
    """See the head of this file."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        names = arguments.nodes(args, "nodes")
        reservations = await context.backend.reservations()
        held = [
            n for n in names if n in reservations and reservations[n].owner == context.owner_mark
        ]
        return Observation(not held, {"released": list(names)}, f"{fold(names)} free")

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        if not arguments.is_known(args, "nodes"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "reserved -> standby"),)
        reservations = await context.backend.reservations()
        names = arguments.nodes(args, "nodes")
        return tuple(
            Change(Sign.ALTER, n, "reserved -> standby") for n in names if n in reservations
        )

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        names = arguments.nodes(args, "nodes")
        await context.backend.release(names, context.owner_mark)
        return ActionResult({"released": list(names)}, say=f"{fold(names)} free")

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        names = arguments.nodes(args, "nodes")
        back = [
            n
            for n in names
            if await context.backend.reserve(n, context.owner_mark, context.clock.now())
        ]
        return ActionResult({"nodes": back}, changed=bool(back), say=f"{fold(back)} reserved again")
