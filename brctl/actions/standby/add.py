"""standby.add: warm nodes and put them into the standby pool, until enough of it is free."""

import json
from collections.abc import Sequence
from pathlib import Path

from brctl.actions import arguments
from brctl.actions.contract import ActionFailed, ActionResult, Observation, Site
from brctl.actions.standby.acquire import free_standbys
from brctl.library.durable_files import write_atomic
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments


class StandbyAdd:
    """Undo takes out of the pool what this run has put in, and nothing else."""

    async def observe(self, site: Site, args: Arguments) -> Observation:
        free, size = await free_standbys(site), arguments.count(args, "size")
        added: Arguments = {"added": list(_added(site)), "free": len(free)}
        return Observation(len(free) >= size, added, f"{len(free)} standbys free, {size} wanted")

    async def plan(self, site: Site, args: Arguments) -> Sequence[Change]:
        missing = arguments.count(args, "size") - len(await free_standbys(site))
        if missing <= 0:
            return ()
        if not arguments.is_known(args, "nodes"):
            return (Change(Sign.ADD, f"{missing} standbys", "warmed and added to the pool"),)
        chosen = await self._candidates(site, args)
        return tuple(Change(Sign.ADD, n, "added to the standby pool") for n in chosen[:missing])

    async def _candidates(self, site: Site, args: Arguments) -> list[str]:
        cordons, members = await site.backend.cordons(), site.standbys()
        named = arguments.nodes(args, "nodes")
        return [node for node in named if node not in members and node not in cordons]

    async def apply(self, site: Site, args: Arguments) -> ActionResult:
        size, before, notes = arguments.count(args, "size"), _added(site), []
        for node in await self._candidates(site, args):
            if len(await free_standbys(site)) >= size:
                break
            # Written before the act: an undo that finds nothing to take out does no harm.
            _remember(site, [*_added(site), node])
            problem = await site.enlist_standby(node)
            notes += [f"{node}: {problem}"] if problem else []
        seen = await self.observe(site, args)
        say = "; ".join([seen.say, *notes])
        if not seen.done:
            raise ActionFailed(f"{say}; no other candidate is left")
        return ActionResult(seen.out, changed=_added(site) != before, say=say)

    async def undo(self, site: Site, args: Arguments) -> ActionResult:
        mine = [node for node in _added(site) if node in site.standbys()]
        await site.dismiss_standbys(mine)
        _remember(site, [])
        return ActionResult(
            {"added": []}, changed=bool(mine), say=f"{fold(mine) or 'none'} taken out"
        )

    async def confirm(self, site: Site, args: Arguments) -> Observation:
        return await self.observe(site, args)


def _file(site: Site) -> Path:
    return site.run_dir / "standbys-added.json"


def _added(site: Site) -> tuple[str, ...]:
    """What this run has put in: the pool itself does not know whose a member is."""
    path = _file(site)
    return tuple(json.loads(path.read_text())) if path.exists() else ()


def _remember(site: Site, nodes: Sequence[str]) -> None:
    write_atomic(_file(site), json.dumps(list(dict.fromkeys(nodes))))
