"""corruption.locate: find the node of a stopped job that computes wrongly, or say it is none."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, ReadOnly
from brctl.evidence.job.numbers import BadNumber, bad_number
from brctl.localise.repetitions import repetitions_for
from brctl.model.errors import UsageError
from brctl.model.fault_catalogue import REPLAYS_FAIL, WRONG_RESULTS
from brctl.model.jobs.job import Job
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments
from brctl.model.sweeps.corruption import CorruptionOrder
from brctl.view.job.corruption import plan_sentence, search_sentences

RESUME_FROM, UNTIL, FIRST_RANK = "BRCTL_RESUME_FROM", "BRCTL_REPLAY_UNTIL", "BRCTL_REPLAY_RANK"
"""What a replay is told: its checkpoint, the step to reach, whose data its first rank reads."""

_BEYOND_STEPS = 2


class CorruptionLocate(ReadOnly):
    """Later steps read `out.suspects`: nodes of the job that were seen to compute wrongly."""

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        job = await context.jobs.get(arguments.text(args, "job"))
        order = _order(args, (), {})
        asked = plan_sentence(order, 1.0 / max(1, arguments.count(args, "one_in", 10)))
        return (
            Change(Sign.ALTER, fold(job.nodes), asked),
            Change(Sign.ALTER, f"job {job.name}", _replay_sentence(context, job)),
        )

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        job = await context.jobs.get(arguments.text(args, "job"))
        bad = _bad_number(context, args)
        gone = _no_checkpoint_before(bad, args, job)
        variables = _variables(args, BadNumber() if gone else bad)
        order = replace(
            _order(args, await _references(context, args, job), variables), not_replayed=gone
        )
        found = await context.search.locate_corruption(job, order, context.run.note)
        suspects = [node for node in found.wrong if node not in found.wrong_references]
        say = "; ".join(search_sentences(found))
        out: Arguments = {
            "suspects": suspects,
            "wrong_references": list(found.wrong_references),
            "undecided": list(found.undecided),
            "unmeasured": [node for node in found.unmeasured if node in job.nodes],
            "everywhere": found.everywhere,
            "reason": WRONG_RESULTS if found.by_results else REPLAYS_FAIL,
        }
        return ActionResult(out, changed=False, say=say)


def _order(
    args: Arguments, references: tuple[str, ...], variables: Mapping[str, str]
) -> CorruptionOrder:
    one_in, missed = arguments.count(args, "one_in", 10), arguments.count(args, "missed_in", 1000)
    chance, miss = 1.0 / max(1, one_in), 1.0 / max(1, missed)
    try:
        repetitions, replays = (repetitions_for(chance, share) for share in (miss, miss / 2))
    except ValueError as exc:
        raise ActionFailed(f"`one_in` or `missed_in`: {exc}") from exc
    return CorruptionOrder(
        repetitions, miss, arguments.seconds(args, "budget", "30m"),
        arguments.seconds(args, "deadline", "10m"), references, variables,
        replay_first=UNTIL in variables, replays=replays,
    )  # fmt: skip


def _replay_sentence(context: RunContext, job: Job) -> str:
    try:
        groups = context.search.replay_groups(job)
    except UsageError as exc:
        return f"not replayed: {exc}"
    sizes = " x ".join((f"{len(groups)} groups", f"{len(groups[0])} nodes"))
    common = -(-len(groups[0]) // len(groups))
    return f"then replayed in 2 phases of {sizes}, which have {common} in common"


async def _references(context: RunContext, args: Arguments, job: Job) -> tuple[str, ...]:
    """Known-good nodes that answer beside the job's, so that two of a kind can be told apart."""
    named = arguments.text(args, "references", "")
    if not named:
        return ()
    try:
        nodes = await context.nodes.select(named)
    except UsageError:
        return ()
    return tuple(node for node in nodes if node not in job.nodes)


def _bad_number(context: RunContext, args: Arguments) -> BadNumber:
    verdict = arguments.text(args, "verdict", "")
    return bad_number(context.verdicts.get(verdict).evidence) if verdict else BadNumber()


def _no_checkpoint_before(bad: BadNumber, args: Arguments, job: Job) -> str:
    """Why the step that went wrong cannot be computed again, and what is still possible."""
    begins_at = arguments.count(args, "begins_at", 0)
    if bad.step is None or begins_at < bad.step:
        return ""
    return (
        f"step {bad.step} is not computed again: no checkpoint from before it is left, replays"
        f" begin after step {begins_at}. They, products and the reference model show a machine that"
        " still computes wrongly; code and data show only with a copy of an older checkpoint in"
        f" {job.checkpoint_dir}"
    )


def _variables(args: Arguments, bad: BadNumber) -> Mapping[str, str]:
    """Where a replay begins, how far it goes, and whose data it sees first."""
    told = {
        RESUME_FROM: arguments.text(args, "checkpoint", ""),
        UNTIL: "" if bad.by_step is None else str(bad.by_step + _BEYOND_STEPS),
        FIRST_RANK: "" if bad.rank is None else str(bad.rank),
    }
    return {name: value for name, value in told.items() if value}
