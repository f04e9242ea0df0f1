"""job.order_ranks: give the job's ranks to its nodes in another order; its next start uses it."""

from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionResult, NothingDone, Observation, VerbImplementation
from brctl.actions.job.hot_update import refuse_running
from brctl.model.jobs.job import Job
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments

PLACES_ITSELF = "kubernetes"
"""Which pod lands where is the cluster's choice."""


class JobOrderRanks(VerbImplementation):
    """See the head of this file. `before` is the order that was looked at, and the way back."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        job = await context.jobs.get(arguments.text(args, "job"))
        done = job.nodes == arguments.nodes(args, "after")
        return Observation(done, {"nodes": list(job.nodes)}, _say(job, done))

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        job = await context.jobs.get(arguments.text(args, "job"))
        pairs = list(zip(job.nodes, arguments.nodes(args, "after"), strict=False))
        moved = sum(now != then for now, then in pairs)
        what = f"{moved} of {len(job.nodes)} nodes take other ranks"
        return (Change(Sign.ALTER, f"job {job.name} rank order", what),) if moved else ()

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        return await _reorder(
            context, args, arguments.nodes(args, "before"), arguments.nodes(args, "after")
        )

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        before, after = arguments.nodes(args, "before"), arguments.nodes(args, "after")
        job = await context.jobs.get(arguments.text(args, "job"))
        if job.nodes != after:
            return ActionResult({"nodes": list(job.nodes)}, changed=False, say="nothing to undo")
        return await _reorder(context, args, after, before)


async def _reorder(
    context: RunContext, args: Arguments, before: tuple[str, ...], after: tuple[str, ...]
) -> ActionResult:
    """From exactly this order to exactly that one, while no rank runs."""
    job = await context.jobs.get(arguments.text(args, "job"))
    if job.nodes == after:
        return ActionResult({"nodes": list(after)}, changed=False, say=_say(job, done=True))
    refuse_other_nodes(context, job, before, after)
    await refuse_running(context, job)
    moved = await context.backend.replace_nodes(job, dict(zip(before, after, strict=True)))
    return ActionResult({"nodes": list(moved.nodes)}, say=_say(moved, done=True))


def refuse_other_nodes(
    context: RunContext, job: Job, before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    """Refuse an order that was not looked at, is of other nodes, or is not ours to choose."""
    if job.nodes != before:
        raise NothingDone(
            f"job {job.name} has other nodes by now, or in another order; look again:"
            f" brctl job place {job.name}"
        )
    if sorted(before) != sorted(after):
        odd = fold(set(before) ^ set(after)) or "a node named twice"
        raise NothingDone(f"`after` is not of the nodes of job {job.name}: {odd}")
    if context.backend.name == PLACES_ITSELF:
        raise NothingDone("Kubernetes places pods itself; ranks cannot be ordered")


def _say(job: Job, done: bool) -> str:
    return f"job {job.name} {'has' if done else 'has not'} the wanted rank order"
