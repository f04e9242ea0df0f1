"""burnin.run: load GPUs near their limit for a while and check every result."""

from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, ReadOnly
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments
from brctl.model.sweeps.burnin import BurninState


class BurninRun(ReadOnly):
    """Passed and failed nodes; one that did not finish has not passed.

    With `may_fail: true` the step succeeds whatever it finds, and later steps read `out.failed`.
    """

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        if not arguments.is_known(args, "nodes"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "loaded by a burn-in"),)
        nodes = fold(arguments.nodes(args, "nodes"))
        return (Change(Sign.ALTER, nodes, "loaded by a burn-in"),)

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        found = await context.sweeps.burn_in(
            arguments.nodes(args, "nodes"),
            arguments.count(args, "level", 3),
            arguments.seconds(args, "duration", "10m"),
            arguments.texts(args, "stop_on", ("xid", "ecc", "thermal")),
        )
        states = {node.node: node for node in found.nodes}
        passed = [name for name, node in states.items() if node.state is BurninState.PASSED]
        failed = [name for name in states if name not in passed]
        say = f"{found.id}: {len(passed)} of {len(states)} nodes passed {found.seconds:.0f} s"
        for name in failed:
            say += f"; {name} {states[name].state}: {states[name].reason or 'no reason args'}"
        if failed and args.get("may_fail") is not True:
            raise ActionFailed(say)
        out: Arguments = {"passed": passed, "failed": failed, "burnin": found.id}
        return ActionResult(out, changed=False, say=say)
