"""job.take_order: let a rank order that waits for the job's next restart come along.

The wish named when the run was planned is taken and no other. Nodes that were replaced since stand
in for those that left; an order that splits no fewer groups by now is dropped, which is said.
"""

from collections.abc import Sequence
from dataclasses import replace

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionResult, Observation, VerbImplementation
from brctl.actions.job.hot_update import refuse_running
from brctl.actions.job.order_ranks import PLACES_ITSELF
from brctl.model.jobs.job import Job
from brctl.model.jobs.wanted_order import Nodes, WantedOrder
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments
from brctl.playbook.placement.domains import domains_for
from brctl.playbook.placement.spread import badness, layout_of, spreads


class JobTakeOrder(VerbImplementation):
    """See the head of this file."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        wish = _wish_of(context, args)
        if wish is None:
            return Observation(done=True, say="no rank order waits")
        job = await context.jobs.get(arguments.text(args, "job"))
        done = wish.run == context.run.name and job.nodes == wish.target
        return Observation(done, {"nodes": list(job.nodes)}, f"{wish.id} by {wish.by}")

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        wish = _wish_of(context, args)
        if wish is None or wish.run:
            return ()
        job = await context.jobs.get(arguments.text(args, "job"))
        what = f"order {wish.id} wanted by {wish.by}, if it still splits fewer groups"
        return (Change(Sign.ALTER, f"job {job.name} rank order", what),)

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        job = await context.jobs.get(arguments.text(args, "job"))
        wish = _wish_of(context, args)
        if wish is None or wish.run not in ("", context.run.name):
            return _kept(job, "no rank order waits")
        await refuse_running(context, job)
        target = wish.target or _better(context, job, wish)
        orders = context.jobs.wanted_order(job.name)
        taken = orders.change(
            wish.id, lambda w: replace(w, run=context.run.name, was=w.was or job.nodes,
                                       target=target),
        )  # fmt: skip
        if taken is None:
            return _kept(job, "another rank order is wanted by now")
        if target == job.nodes:
            return _kept(job, f"{wish.id} splits no fewer groups by now: dropped")
        swaps = dict(zip(job.nodes, target, strict=True))
        moved = await context.backend.replace_nodes(job, swaps)
        return ActionResult({"nodes": list(moved.nodes)}, say=f"ranks stand as {wish.id} wants it")

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        job = await context.jobs.get(arguments.text(args, "job"))
        wish = _wish_of(context, args)
        if wish is None or wish.run != context.run.name:
            return _kept(job, "nothing to undo")
        if job.nodes == wish.target != wish.was:
            await refuse_running(context, job)
            job = await context.backend.replace_nodes(
                job, dict(zip(job.nodes, wish.was, strict=True))
            )
        context.jobs.wanted_order(job.name).change(wish.id, WantedOrder.waiting_again)
        return ActionResult({"nodes": list(job.nodes)}, say=f"{wish.id} waits again")


def _kept(job: Job, why: str) -> ActionResult:
    return ActionResult({"nodes": list(job.nodes)}, changed=False, say=why)


def _wish_of(context: RunContext, args: Arguments) -> WantedOrder | None:
    """The wish that the plan named; None where it named none, or another came in its place."""
    name = arguments.text(args, "order", "")
    found = context.jobs.wanted_order(arguments.text(args, "job")).read() if name else None
    return found if found is not None and found.id == name else None


def _better(context: RunContext, job: Job, wish: WantedOrder) -> Nodes:
    """The wanted order of the nodes the job has now; theirs where it splits no fewer groups."""
    wanted = wish.among(job.nodes)
    if sorted(wanted) != sorted(job.nodes) or context.backend.name == PLACES_ITSELF:
        return job.nodes
    layout, domains = layout_of(job), domains_for(context.inventory.labels(), job.nodes)
    now, then = (
        badness(spreads(layout, [domains.of(node) for node in nodes]))
        for nodes in (job.nodes, wanted)
    )
    return wanted if then < now else job.nodes
