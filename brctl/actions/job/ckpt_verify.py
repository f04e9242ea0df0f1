"""ckpt.verify: read one checkpoint, or the newest complete one, and check every item of it."""

from pathlib import PurePosixPath

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, ReadOnly
from brctl.actions.job.ckpt_select import CHECK, checkpoints_in, first_answer
from brctl.model.runs.playbook import Arguments
from brctl.model.sweeps.report import Value


class CkptVerify(ReadOnly):
    """The step fails when the checkpoint is incomplete or damaged, or nobody could read it."""

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        job = await context.jobs.get(arguments.text(args, "job"))
        excluded = arguments.nodes(args, "reachable_without") if "reachable_without" in args else ()
        report = await first_answer(context, job, excluded, {})
        candidate = _wanted(checkpoints_in(job, report), args)
        again = await context.sweeps.ask(
            report.node, CHECK, job, {"steps": [candidate["step"]], "verify": True}
        )
        found = [c for c in checkpoints_in(job, again) if c["name"] == candidate["name"]]
        if not found or found[0].get("complete") is not True:
            why = str(found[0].get("problem", "damaged")) if found else "it gave no answer"
            raise ActionFailed(f"checkpoint of step {candidate['step']}: {why}")
        path = str(job.checkpoint_dir / str(candidate["name"]))
        say = f"step {candidate['step']} is whole, read from {report.node}"
        return ActionResult({"path": path, "step": int(candidate["step"])}, changed=False, say=say)


def _wanted(known: list[dict[str, Value]], args: Arguments) -> dict[str, Value]:
    if "path" in args:
        name = PurePosixPath(arguments.text(args, "path")).name
        named = [c for c in known if c["name"] == name]
        if not named:
            raise ActionFailed(f"no checkpoint {name!r} among {len(known)}")
        return named[0]
    complete = [c for c in known if c.get("complete") is True]
    if not complete:
        raise ActionFailed(f"none of {len(known)} checkpoints is complete")
    return complete[0]
