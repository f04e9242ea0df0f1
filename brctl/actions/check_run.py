"""check.run: run the checks up to a level on nodes; the step fails when too many do not pass."""

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, ReadOnly
from brctl.model.command import Outcome
from brctl.model.evidence import Weight
from brctl.model.fault import FaultClass
from brctl.model.fault_catalogue import WRONG_RESULTS
from brctl.model.nodeset import fold
from brctl.model.runs.playbook import Arguments
from brctl.model.sweeps.sweep import Health, NodeHealth


class CheckRun(ReadOnly):
    """Passed, failed and silent nodes; a node that gave no answer has not passed.

    With `may_fail: true` the step succeeds whatever it finds, and later steps read `out.failed`: of
    these `out.wrong` computed wrongly, as `out.wrong_reason` says, and `out.broken` did not.
    """

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        found = await context.sweeps.examine(
            arguments.nodes(args, "nodes"), arguments.count(args, "level", 1)
        )
        failed = [health.node for health in found if _failed(health)]
        doubtful = [h.node for h in found if not _failed(h) and h.health is Health.UNKNOWN]
        passed = [h.node for h in found if h.node not in [*failed, *doubtful]]
        say = f"{len(passed)} of {len(found)} nodes pass"
        say += f", {fold(failed)} fails" if failed else ""
        say += f", not every check of {fold(doubtful)} gave an answer" if doubtful else ""
        if failed and args.get("may_fail") is not True:
            raise ActionFailed(say)
        wrong = [health.node for health in found if _failed(health) and _computed_wrongly(health)]
        out: Arguments = {
            "passed": passed,
            "failed": failed,
            "doubtful": doubtful,
            "wrong": wrong,
            "broken": [node for node in failed if node not in wrong],
            "wrong_reason": WRONG_RESULTS,
        }
        return ActionResult(out, changed=False, say=say)


def _failed(health: NodeHealth) -> bool:
    return (
        health.health in (Health.CRITICAL, Health.WARNING)
        or health.report.outcome is not Outcome.ANSWERED
    )


def _computed_wrongly(health: NodeHealth) -> bool:
    return any(
        item.fault is FaultClass.SILENT_CORRUPTION and item.weight is Weight.CONVICTS
        for item in health.evidence
    )
