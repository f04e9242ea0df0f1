"""node.drain: cordon nodes and wait until their work has gone, asking it to go where one can."""

from collections.abc import Mapping, Sequence

from brctl.actions import arguments
from brctl.actions.contract import ActionFailed, ActionResult, FailureKind, Observation, Site
from brctl.actions.node.cordon import NodeCordon
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments

POLL_S = 5.0
"""As `kubectl drain` waits between two evictions that a budget refuses."""

WITHIN = "10m"
_cordon = NodeCordon()


class NodeDrain:
    """Undo gives the nodes back; what was asked to go does not return by that."""

    async def observe(self, site: Site, args: Arguments) -> Observation:
        names = arguments.nodes(args, "nodes")
        left = await site.backend.work_on(names, await site.jobs())
        cordoned = await _cordon.observe(site, args)
        say = f"{fold(names)} drained" if not left else _say(left)
        return Observation(cordoned.done is True and not left, {"drained": list(names)}, say)

    async def plan(self, site: Site, args: Arguments) -> Sequence[Change]:
        changes = tuple(await _cordon.plan(site, args))
        if not arguments.is_known(args, "nodes"):
            return changes
        left = await site.backend.work_on(arguments.nodes(args, "nodes"), await site.jobs())
        return (*changes, *(Change(Sign.REMOVE, node, why) for node, why in sorted(left.items())))

    async def apply(self, site: Site, args: Arguments) -> ActionResult:
        names = arguments.nodes(args, "nodes")
        within_s = arguments.seconds(args, "within", WITHIN)
        cordoned = await _cordon.apply(site, args)
        started, jobs = site.now(), await site.jobs()
        asked = left = await site.backend.evict(names, jobs)
        while left:
            if (site.now() - started).total_seconds() >= within_s:
                raise ActionFailed(f"after {within_s:g} s {_say(left)}", FailureKind.TIMEOUT)
            await site.pause(min(POLL_S, within_s))
            left = await site.backend.evict(names, jobs)
        changed = cordoned.changed or bool(asked)
        return ActionResult({"drained": list(names)}, changed=changed, say=f"{fold(names)} drained")

    async def undo(self, site: Site, args: Arguments) -> ActionResult:
        return await _cordon.undo(site, args)

    async def confirm(self, site: Site, args: Arguments) -> Observation:
        return await self.observe(site, args)


def _say(left: Mapping[str, str]) -> str:
    return "; ".join(f"{node}: {why}" for node, why in sorted(left.items()))
