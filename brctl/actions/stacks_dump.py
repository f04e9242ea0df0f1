"""stacks.dump: the stacks of a job's ranks, kept beside the run's journal."""

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionResult, ReadOnly
from brctl.model.runs.playbook import Arguments


class StacksDump(ReadOnly):
    """A rank that gave no stack is in `silent`; its file says why."""

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        job = await context.jobs.get(arguments.text(args, "job"))
        nodes = arguments.nodes(args, "nodes") if "nodes" in args else ()
        folder = context.run.folder / "stacks"
        silent = await context.jobs.dump_stacks(job, folder, nodes)
        expected = [rank for node in nodes or job.nodes for rank in job.ranks_on(node)]
        say = f"stacks of {len(expected) - len(silent)} of {len(expected)} ranks"
        out: Arguments = {"directory": str(folder), "silent": list(silent)}
        return ActionResult(out, changed=False, say=say)
