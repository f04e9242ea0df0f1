"""node.drain: cordon nodes and wait until their work has gone, asking it to go where one can."""

from collections.abc import Mapping, Sequence

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import (
    ActionFailed,
    ActionResult,
    FailureKind,
    Observation,
    VerbImplementation,
)
from brctl.actions.node.cordon import NodeCordon
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments

POLL_S = 5.0
"""As `kubectl drain` waits between two evictions that a budget refuses."""

WITHIN = "10m"
_cordon = NodeCordon()


class NodeDrain(VerbImplementation):
    """Undo gives the nodes back; what was asked to go does not return by that."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        names = arguments.nodes(args, "nodes")
        left = await context.backend.work_on(names, await context.jobs.all())
        cordoned = await _cordon.observe(context, args)
        say = f"{fold(names)} drained" if not left else _say(left)
        return Observation(cordoned.done is True and not left, {"drained": list(names)}, say)

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        changes = tuple(await _cordon.plan(context, args))
        if not arguments.is_known(args, "nodes"):
            return changes
        left = await context.backend.work_on(
            arguments.nodes(args, "nodes"), await context.jobs.all()
        )
        return (*changes, *(Change(Sign.REMOVE, node, why) for node, why in sorted(left.items())))

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        names = arguments.nodes(args, "nodes")
        within_s = arguments.seconds(args, "within", WITHIN)
        cordoned = await _cordon.apply(context, args)
        started, jobs = context.clock.now(), await context.jobs.all()
        evicted = left = await context.backend.evict(names, jobs)
        told: Mapping[str, str] = {}
        while left:
            if left != told:
                context.run.note(f"waits for {_say(left)}")
                told = left
            if (context.clock.now() - started).total_seconds() >= within_s:
                raise ActionFailed(f"after {within_s:g} s {_say(left)}", FailureKind.TIMEOUT)
            await context.clock.pause(min(POLL_S, within_s))
            left = await context.backend.evict(names, jobs)
        changed = cordoned.changed or bool(evicted)
        return ActionResult({"drained": list(names)}, changed=changed, say=f"{fold(names)} drained")

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        return await _cordon.undo(context, args)


def _say(left: Mapping[str, str]) -> str:
    return "; ".join(f"{node}: {why}" for node, why in sorted(left.items()))
