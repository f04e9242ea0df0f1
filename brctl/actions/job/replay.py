"""job.replay: dual-phase replay of a stopped job; which node fails in both rounds."""

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionResult, ReadOnly
from brctl.model.fault_catalogue import REPLAYS_FAIL, WRONG_RESULTS
from brctl.model.localisation import FaultKind
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments


class JobReplay(ReadOnly):
    """Suspects are convicted, `out.reason` says of what; of the undecided, some are innocent."""

    async def plan(self, context: RunContext, args: Arguments) -> tuple[Change, ...]:
        job = await context.jobs.get(arguments.text(args, "job"))
        groups = context.search.replay_groups(job)
        what = f"replayed in 2 rounds of {len(groups)} groups, nodes {fold(job.nodes)}"
        return (Change(Sign.ALTER, f"job {job.name}", what),)

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        job = await context.jobs.get(arguments.text(args, "job"))
        found = await context.search.replay(job, arguments.seconds(args, "deadline", "20m"))
        suspects: list[str] = []
        undecided: list[str] = []
        wrong = True
        for finding in found.conclusion.findings:
            if finding.kind is FaultKind.NODE:
                suspects += finding.members
                wrong = wrong and found.computed_wrongly(finding)
            elif finding.kind is not FaultKind.NONE:
                undecided += finding.members
        why = "; ".join(f.why for f in found.conclusion.findings)
        say = f"{found.conclusion.rounds} rounds: {fold(suspects) or 'nobody'} convicted ({why})"
        say += f"; not decided between {fold(undecided)}" if undecided else ""
        reason = WRONG_RESULTS if wrong else REPLAYS_FAIL
        out: Arguments = {"suspects": suspects, "undecided": undecided, "reason": reason}
        return ActionResult(out, changed=False, say=say)
