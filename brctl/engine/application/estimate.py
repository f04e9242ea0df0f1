"""Look up what a plan is expected to cost: earlier runs, checkpoints, the standbys."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed
from brctl.actions.standby.acquire import free_standbys
from brctl.engine.job.checkpoints import look_at_checkpoints
from brctl.engine.runs.plan import Prepared
from brctl.engine.runs.read_run import sound_runs
from brctl.model.errors import BrctlError
from brctl.model.runs.estimate import Estimate, LostSteps
from brctl.model.runs.plan import Plan
from brctl.model.verdict import Verdict
from brctl.playbook.earlier_runs import STARTS_JOBS, earlier_runs

_LOOK_BACK = timedelta(days=90)
_LOOK_S = 10.0
"""A person waits for the question: what takes longer is said to be not known."""


async def with_estimate(
    context: RunContext, prepared: Prepared, verdict: Verdict | None
) -> Prepared:
    """The same plan with what it is expected to cost; the world is only looked at."""
    plan, job = prepared.plan, str(prepared.inputs.job.get("name") or "")
    verbs = _verbs(plan)
    since = context.clock.now() - _LOOK_BACK
    resumes = STARTS_JOBS in verbs and bool(job)
    estimate = Estimate(
        took=earlier_runs(sound_runs(context.state_dir, since), plan.playbook, job),
        at_most_s=plan.longest_path_s,
        resumes=resumes,
        loss=await _loss(context, plan, job, verdict) if resumes else "",
        standbys_left=await _standbys_left(context, plan) if "standby.acquire" in verbs else None,
    )
    return replace(prepared, plan=replace(plan, estimate=estimate))


def _verbs(plan: Plan) -> set[str]:
    return {step.uses for step in plan.steps if not step.skipped}


async def _loss(
    context: RunContext, plan: Plan, job: str, verdict: Verdict | None
) -> LostSteps | str:
    try:
        async with asyncio.timeout(_LOOK_S):
            found = await look_at_checkpoints(
                context, await context.jobs.get(job), verify=False, without=plan.nodes
            )
    except TimeoutError:
        return f"no node told of the checkpoints of {job} within {_LOOK_S:g} s"
    except (ActionFailed, BrctlError) as exc:
        return str(exc)
    stopped = verdict.job_step if verdict is not None and verdict.job == job else None
    kept = found.kept.newest(plan.nodes) if found.kept is not None else None
    if kept is not None:
        return LostSteps(kept.step, None, stopped, in_memory=True)
    newest = next((c for c in found.checkpoints if c.complete is True), None)
    if newest is None:
        return f"{found.node or 'nobody'} sees no whole checkpoint of {job}"
    return LostSteps(newest.step, newest.age_s, stopped)


async def _standbys_left(context: RunContext, plan: Plan) -> int | str:
    try:
        free = await free_standbys(context)
    except BrctlError as exc:
        return str(exc)
    return len(set(free) - {change.subject for change in plan.changes})
