"""job.replay: dual-phase replay of a stopped job; which node fails in both rounds."""

from brctl.actions import arguments
from brctl.actions.contract import ActionResult, ReadOnly, Site
from brctl.model.localisation import FaultKind
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments


class JobReplay(ReadOnly):
    """Suspects are nodes that are convicted; of the undecided, some are innocent."""

    async def plan(self, site: Site, args: Arguments) -> tuple[Change, ...]:
        job = await site.job(arguments.text(args, "job"))
        groups = site.replay_groups(job)
        what = f"replayed in 2 rounds of {len(groups)} groups, nodes {fold(job.nodes)}"
        return (Change(Sign.ALTER, f"job {job.name}", what),)

    async def apply(self, site: Site, args: Arguments) -> ActionResult:
        job = await site.job(arguments.text(args, "job"))
        found = await site.replay(job, arguments.seconds(args, "deadline", "20m"))
        suspects: list[str] = []
        undecided: list[str] = []
        for finding in found.conclusion.findings:
            if finding.kind is FaultKind.NODE:
                suspects += finding.members
            elif finding.kind is not FaultKind.NONE:
                undecided += finding.members
        why = "; ".join(f.why for f in found.conclusion.findings)
        say = f"{found.conclusion.rounds} rounds: {fold(suspects) or 'nobody'} convicted ({why})"
        say += f"; not decided between {fold(undecided)}" if undecided else ""
        out: Arguments = {"suspects": suspects, "undecided": undecided}
        return ActionResult(out, changed=False, say=say)
