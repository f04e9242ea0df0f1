"""burnin.run: load GPUs near their limit for a while and check every result."""

from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.contract import ActionFailed, Done, ReadOnly, Site
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments
from brctl.model.sweeps.burnin import BurninState


class BurninRun(ReadOnly):
    """Passed and failed nodes; one that did not finish has not passed.

    With `may_fail: true` the step succeeds whatever it finds, and later steps read `out.failed`.
    """

    async def plan(self, site: Site, given: Arguments) -> Sequence[Change]:
        if not arguments.is_known(given, "nodes"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "loaded by a burn-in"),)
        nodes = fold(arguments.nodes(given, "nodes"))
        return (Change(Sign.ALTER, nodes, "loaded by a burn-in"),)

    async def apply(self, site: Site, given: Arguments) -> Done:
        found = await site.burn_in(
            arguments.nodes(given, "nodes"),
            arguments.count(given, "level", 3),
            arguments.seconds(given, "duration", "10m"),
            arguments.texts(given, "stop_on", ("xid", "ecc", "thermal")),
        )
        states = {node.node: node for node in found.nodes}
        passed = [name for name, node in states.items() if node.state is BurninState.PASSED]
        failed = [name for name in states if name not in passed]
        say = f"{found.id}: {len(passed)} of {len(states)} nodes passed {found.seconds:.0f} s"
        for name in failed:
            say += f"; {name} {states[name].state}: {states[name].reason or 'no reason given'}"
        if failed and given.get("may_fail") is not True:
            raise ActionFailed(say)
        out: Arguments = {"passed": passed, "failed": failed, "burnin": found.id}
        return Done(out, changed=False, say=say)
