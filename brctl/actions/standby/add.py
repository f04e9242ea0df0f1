"""standby.add: warm nodes and put them into the standby pool, until enough of it is free."""

import json
from collections.abc import Sequence
from pathlib import Path

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, Observation, VerbImplementation
from brctl.actions.standby.acquire import free_standbys
from brctl.library.durable_files import write_atomic
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments


class StandbyAdd(VerbImplementation):
    """Undo takes out of the pool what this run has put in, and nothing else."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        free, size = await free_standbys(context), arguments.count(args, "size")
        added: Arguments = {"added": list(_added(context)), "free": len(free)}
        return Observation(len(free) >= size, added, f"{len(free)} standbys free, {size} wanted")

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        missing = arguments.count(args, "size") - len(await free_standbys(context))
        if missing <= 0:
            return ()
        if not arguments.is_known(args, "nodes"):
            return (Change(Sign.ADD, f"{missing} standbys", "warmed and added to the pool"),)
        chosen = await self._candidates(context, args)
        return tuple(Change(Sign.ADD, n, "added to the standby pool") for n in chosen[:missing])

    async def _candidates(self, context: RunContext, args: Arguments) -> list[str]:
        cordons, members = await context.backend.cordons(), context.standbys.best_first()
        named = arguments.nodes(args, "nodes")
        return [node for node in named if node not in members and node not in cordons]

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        size, before, notes = arguments.count(args, "size"), _added(context), []
        for node in await self._candidates(context, args):
            if len(await free_standbys(context)) >= size:
                break
            # Written before the act: an undo that finds nothing to take out does no harm.
            _remember(context, [*_added(context), node])
            problem = await context.standbys.enlist(node)
            notes += [f"{node}: {problem}"] if problem else []
        observation = await self.observe(context, args)
        say = "; ".join([observation.say, *notes])
        if not observation.done:
            raise ActionFailed(f"{say}; no other candidate is left")
        return ActionResult(observation.out, changed=_added(context) != before, say=say)

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        own = [node for node in _added(context) if node in context.standbys.best_first()]
        await context.standbys.dismiss(own)
        _remember(context, [])
        return ActionResult(
            {"added": []}, changed=bool(own), say=f"{fold(own) or 'none'} taken out"
        )


def _file(context: RunContext) -> Path:
    return context.run.folder / "standbys-added.json"


def _added(context: RunContext) -> tuple[str, ...]:
    """What this run has put in: the pool itself does not know whose a member is."""
    path = _file(context)
    return tuple(json.loads(path.read_text())) if path.exists() else ()


def _remember(context: RunContext, nodes: Sequence[str]) -> None:
    write_atomic(_file(context), json.dumps(list(dict.fromkeys(nodes))))
