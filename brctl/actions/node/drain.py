"""node.drain: cordon nodes and wait until their work has gone, asking it to go where one can."""

from collections.abc import Mapping, Sequence

from brctl.actions import arguments
from brctl.actions.contract import ActionFailed, Done, FailureKind, Seen, Site
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

    async def observe(self, site: Site, given: Arguments) -> Seen:
        names = arguments.nodes(given, "nodes")
        left = await site.backend.work_on(names, await site.jobs())
        cordoned = await _cordon.observe(site, given)
        say = f"{fold(names)} drained" if not left else _say(left)
        return Seen(cordoned.done is True and not left, {"drained": list(names)}, say)

    async def plan(self, site: Site, given: Arguments) -> Sequence[Change]:
        changes = tuple(await _cordon.plan(site, given))
        if not arguments.is_known(given, "nodes"):
            return changes
        left = await site.backend.work_on(arguments.nodes(given, "nodes"), await site.jobs())
        return (*changes, *(Change(Sign.REMOVE, node, why) for node, why in sorted(left.items())))

    async def apply(self, site: Site, given: Arguments) -> Done:
        names = arguments.nodes(given, "nodes")
        within_s = arguments.seconds(given, "within", WITHIN)
        cordoned = await _cordon.apply(site, given)
        started, jobs = site.now(), await site.jobs()
        asked = left = await site.backend.evict(names, jobs)
        while left:
            if (site.now() - started).total_seconds() >= within_s:
                raise ActionFailed(f"after {within_s:g} s {_say(left)}", FailureKind.TIMEOUT)
            await site.pause(min(POLL_S, within_s))
            left = await site.backend.evict(names, jobs)
        changed = cordoned.changed or bool(asked)
        return Done({"drained": list(names)}, changed=changed, say=f"{fold(names)} drained")

    async def undo(self, site: Site, given: Arguments) -> Done:
        return await _cordon.undo(site, given)

    async def confirm(self, site: Site, given: Arguments) -> Seen:
        return await self.observe(site, given)


def _say(left: Mapping[str, str]) -> str:
    return "; ".join(f"{node}: {why}" for node, why in sorted(left.items()))
