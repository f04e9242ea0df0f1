"""ckpt.select: what a restart goes on from, read from surviving nodes.

The newest checkpoint that is complete and undamaged; of a job whose ranks keep each step in memory
the newest step that all of them have there, and the checkpoint in case that fails.
"""

from collections.abc import Sequence
from dataclasses import replace

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, FailureKind, ReadOnly
from brctl.actions.job.kept_steps import newest_sound
from brctl.evidence.job.kept_steps import KeptStep, KeptSteps
from brctl.evidence.job.numbers import bad_number
from brctl.model.command import Outcome
from brctl.model.jobs.checkpoint_path import is_named_for
from brctl.model.jobs.job import Job
from brctl.model.nodeset import fold
from brctl.model.runs.playbook import Arguments
from brctl.model.sweeps.report import NodeReport, ProbeStatus, Value

CHECK = "job.checkpoint"
PREFIX = "job.checkpoint."
STEP_LIMIT = 10**18
NAMES_LIMIT = 64
"""A sound node names the newest 8. A job's own pattern takes 0.1 s for the worst of names."""
TRIES = 4
"""Damage is rare: several bad ones in a row are a storage fault, and a person should look."""


class CkptSelect(ReadOnly):
    """See the head of this file. Damage is dear to look for, so only what is complete is read."""

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        job = await context.jobs.get(arguments.text(args, "job"))
        excluded = arguments.nodes(args, "reachable_without") if "reachable_without" in args else ()
        if job.slot_directory is None:
            return await self._saved(context, job, excluded, args)
        newest, kept = await newest_sound(context.sweeps, job, without=excluded)
        spoilt = _spoilt_step(context, args)
        if newest is not None and spoilt is not None and newest.step >= spoilt:
            newest = None
        try:
            saved = await self._saved(context, job, excluded, args)
        except ActionFailed as failed:
            if newest is None:
                raise ActionFailed(f"{_no_kept_step(kept)}; {failed}", failed.kind) from failed
            saved = ActionResult(
                {"path": ""}, changed=False, say=f"no checkpoint behind it: {failed}"
            )
        return _with_kept_step(saved, newest, kept)

    async def _saved(
        self, context: RunContext, job: Job, excluded: Sequence[str], args: Arguments
    ) -> ActionResult:
        report = await first_answer(context, job, excluded, {})
        found = checkpoints_in(job, report)
        complete = [c for c in found if c.get("complete") is True]
        if not complete:
            raise ActionFailed(f"none of {len(found)} checkpoints in {job.checkpoint_dir} is whole")
        complete, doubt = _before(complete, _spoilt_step(context, args))
        _refuse_old(complete[0], args)
        for candidate in complete[:TRIES]:
            if await self._is_sound(context, job, report.node, candidate):
                chosen = _chosen(job, candidate, report.node, skipped=found.index(candidate))
                return replace(chosen, say=chosen.say + doubt)
        raise ActionFailed(f"the newest {TRIES} complete checkpoints are damaged")

    async def _is_sound(
        self, context: RunContext, job: Job, node: str, candidate: dict[str, Value]
    ) -> bool:
        wanted = {"steps": [candidate["step"]], "verify": True}
        report = await context.sweeps.ask(node, CHECK, job, wanted)
        again = [c for c in checkpoints_in(job, report) if c["name"] == candidate["name"]]
        # A check that gave no answer did not find the checkpoint sound.
        return bool(again) and again[0].get("complete") is True


def _spoilt_step(context: RunContext, args: Arguments) -> int | None:
    """The step from which on the numbers of a verdict are wrong; None where it says no step."""
    verdict = arguments.text(args, "verdict", "")
    return bad_number(context.verdicts.get(verdict).evidence).step if verdict else None


def _before(
    complete: list[dict[str, Value]], spoilt: int | None
) -> tuple[list[dict[str, Value]], str]:
    """Those from before that step; where none is left all of them, and the words that say so."""
    if spoilt is None:
        return complete, ""
    clean = [row for row in complete if isinstance(row["step"], int) and row["step"] < spoilt]
    if clean:
        return clean, f", from before step {spoilt} at which the numbers went wrong"
    oldest = complete[-1]["step"]
    none = f"none is left from before step {spoilt}, at which the numbers went wrong"
    return complete, f"; the oldest is of step {oldest}; {none}"


def _with_kept_step(saved: ActionResult, newest: KeptStep | None, kept: KeptSteps) -> ActionResult:
    """The ranks go on from memory by themselves; the checkpoint is what they fall back to."""
    if newest is None:
        return replace(saved, say=f"{saved.say}; {_no_kept_step(kept)}")
    own, all_ranks = kept.ranks_at(newest, own=True), kept.job.world_size
    say = f"step {newest.step} in memory, {own} of {all_ranks} ranks on their own nodes"
    return replace(saved, out={**saved.out, "step": newest.step}, say=f"{say}; else {saved.say}")


def _no_kept_step(kept: KeptSteps) -> str:
    silent = f", nothing is known of {fold(kept.silent)}" if kept.silent else ""
    missing = kept.uncopied()
    ranks = f"nothing of rank {missing[0]}" if missing else "no step of all ranks"
    also = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return f"{ranks}{also} is in memory{silent}"


def checkpoints_in(job: Job, report: NodeReport) -> list[dict[str, Value]]:
    """Readings by checkpoint, newest step first; what is named like none is left out."""
    by_subject: dict[str, dict[str, Value]] = {}
    for item in report.measurements:
        known_or_free = item.subject in by_subject or len(by_subject) < NAMES_LIMIT
        if item.subject.startswith("ckpt:") and known_or_free:
            row = by_subject.setdefault(item.subject, {"name": item.subject[len("ckpt:") :]})
            row[item.name.removeprefix(PREFIX)] = item.value
    known = [row for row in by_subject.values() if _is_named_for_its_step(job, row)]
    return sorted(known, key=lambda row: int(row["step"]), reverse=True)


def _is_named_for_its_step(job: Job, row: dict[str, Value]) -> bool:
    step = row.get("step")
    if type(step) is not int or not 0 <= step < STEP_LIMIT:
        return False
    return is_named_for(job, str(row["name"]), step)


def _refuse_old(newest: dict[str, Value], args: Arguments) -> None:
    if "max_age" not in args:
        return
    limit_s, age = arguments.seconds(args, "max_age"), newest.get("age_s")
    if not isinstance(age, int | float) or age > limit_s:
        raise ActionFailed(f"the newest whole checkpoint is {age} s old, more than {limit_s:g} s")


def _chosen(job: Job, candidate: dict[str, Value], node: str, *, skipped: int) -> ActionResult:
    path = str(job.checkpoint_dir / str(candidate["name"]))
    newer = f", {skipped} newer passed over" if skipped else ""
    return ActionResult(
        {"path": path, "step": int(candidate["step"])},
        changed=False,
        say=f"step {candidate['step']}, checked from {node}{newer}",
    )


def _why(report: NodeReport) -> str:
    if report.outcome is not Outcome.ANSWERED:
        return report.why_silent
    return report.notes[0] if report.notes else "no measurement"


async def first_answer(
    context: RunContext, job: Job, excluded: Sequence[str], parameters: dict[str, object]
) -> NodeReport:
    """Ask one node after the other; the suspects are not asked, because they may be gone."""
    reasons = []
    for node in (name for name in job.nodes if name not in excluded):
        report = await context.sweeps.ask(node, CHECK, job, parameters)
        if any(r.status is ProbeStatus.MEASURED for r in report.results):
            return report
        reasons.append(f"{node}: {_why(report)}")
    reason = "; ".join(reasons[:3]) or "no node is left to ask"
    raise ActionFailed(f"no node can read {job.checkpoint_dir}: {reason}", FailureKind.TRANSPORT)
