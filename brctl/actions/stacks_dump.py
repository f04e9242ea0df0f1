"""stacks.dump: stacks and flight recorders of a job's ranks, kept beside the run's journal.

With `within`, whoever has not answered by then is not waited for, and is said not to be captured.
"""

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionResult, ReadOnly
from brctl.model.jobs.rank_dumps import RankDumps
from brctl.model.nodeset import fold
from brctl.model.runs.playbook import Arguments


class StacksDump(ReadOnly):
    """A rank that gave no stack is in `silent`; its file says why."""

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        job = await context.jobs.get(arguments.text(args, "job"))
        nodes = arguments.nodes(args, "nodes") if "nodes" in args else ()
        within_s = arguments.seconds(args, "within") if "within" in args else None
        folder = context.run.folder / "stacks"
        found = await context.jobs.dump_ranks(job, folder, nodes, within_s)
        out: Arguments = {
            "directory": str(folder),
            "silent": sorted(found.silent),
            "recorders": list(found.recorders),
        }
        return ActionResult(out, changed=False, say=_say(found))


def _say(found: RankDumps) -> str:
    got = len(found.asked) - len(found.silent)
    say = f"stacks of {got} of {len(found.asked)} ranks"
    if found.recorders:
        say += f", flight recorders of {len(found.recorders)}"
    by_reason: dict[str, list[int]] = {}
    for rank, why in sorted(found.silent.items()):
        by_reason.setdefault(why, []).append(rank)
    for why, ranks in by_reason.items():
        say += f"; not captured: {fold(f'rank{rank}' for rank in ranks)}: {why}"
    if found.late:
        say += "; not captured: flight recorders, the time was over"
    return say
