"""Part of a standby's admission: it has the code the job's ranks start from.

Else the start would fail when the job is stopped already.
"""

from collections.abc import Sequence
from dataclasses import replace

from brctl.actions.context import RunContext
from brctl.actions.job.code_copies import CHECK, copies_of
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.sweeps.sweep import Health, NodeHealth


async def judge_code(
    context: RunContext, job_name: str, examined: Sequence[NodeHealth]
) -> Sequence[NodeHealth]:
    """The same nodes; one without the job's code, or with other content, is not well."""
    job = await context.jobs.get(job_name) if job_name else None
    if job is None or job.code is None or not job.code.digest:
        return examined
    copies = await copies_of(context.sweeps, job, job.code, [health.node for health in examined])
    judged = []
    for health in examined:
        problem = copies.of(health.node).problem(job.code.digest)
        judged.append(_unfit(health, problem) if problem else health)
    return judged


def _unfit(health: NodeHealth, problem: str) -> NodeHealth:
    evidence = Evidence(
        CHECK,
        Subject(health.node),
        Weight.HINTS,
        FaultClass.ENVIRONMENT_MISMATCH,
        Role.ROOT,
        CHECK,
        problem,
    )
    return replace(health, health=Health.CRITICAL, evidence=(evidence, *health.evidence))
