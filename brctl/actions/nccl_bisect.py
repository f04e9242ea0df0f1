"""nccl.bisect: find which of the nodes fail collectives; later steps read `out.suspects`."""

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionResult, ReadOnly
from brctl.model.localisation import FaultKind
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments
from brctl.model.units import parse_size_bytes

NODE_KINDS = (FaultKind.NODE, FaultKind.LINK, FaultKind.SLOW)
"""Findings whose members are nodes to take out; a leaf, a pair or sheer scale names none."""


class NcclBisect(ReadOnly):
    """The nodes that are convicted, and those of which one is bad but not told which."""

    async def plan(self, context: RunContext, args: Arguments) -> tuple[Change, ...]:
        nodes = arguments.nodes(args, "nodes")
        return (Change(Sign.ALTER, fold(nodes), "loaded by collectives while it is searched"),)

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        size = parse_size_bytes(str(args.get("size", "64M")))
        found = await context.search.bisect(
            arguments.nodes(args, "nodes"),
            size,
            arguments.count(args, "reps", 8),
            arguments.seconds(args, "budget", "10m"),
        )
        suspects: list[str] = []
        undecided: list[str] = []
        for finding in found.conclusion.findings:
            if finding.kind in NODE_KINDS:
                suspects += finding.members
            elif finding.kind is not FaultKind.NONE:
                undecided += finding.members
        say = f"{found.conclusion.rounds} rounds: suspects {fold(suspects) or 'none'}"
        say += f", not decided between {', '.join(undecided)}" if undecided else ""
        out: Arguments = {"suspects": suspects, "undecided": undecided}
        return ActionResult(out, changed=False, say=say)
