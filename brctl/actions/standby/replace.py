"""Take another standby for one that died after this run had reserved it and put it into the job."""

from collections.abc import Sequence

from brctl.actions.context import RunContext
from brctl.actions.job.replace_nodes import JobReplaceNodes, was_reserved
from brctl.actions.standby.acquire import StandbyAcquire, reject
from brctl.model.command import Outcome
from brctl.model.jobs.job import Job
from brctl.model.sweeps.sweep import Health, NodeHealth


async def replace_lost_standbys(context: RunContext, job: Job) -> str:
    """Put others in the places of this run's standbys that are not well; says who, "" for nobody.

    Raises:
        ActionFailed: There are not enough others.
    """
    lost = [health for health in await _own_standbys(context, job) if _is_lost(health)]
    if not lost:
        return ""
    for health in lost:
        await reject(context, health)
    leaving = [health.node for health in lost]
    found = await StandbyAcquire().apply(
        context, {"count": len(lost), "job": job.name, "replacing": leaving}
    )
    moved = {"job": job.name, "out": leaving, "in": found.out["nodes"]}
    return (await JobReplaceNodes().apply(context, moved)).say


async def _own_standbys(context: RunContext, job: Job) -> Sequence[NodeHealth]:
    mine = [node for node in job.nodes if was_reserved(context, node)]
    return await context.sweeps.examine(mine, 1) if mine else ()


def _is_lost(health: NodeHealth) -> bool:
    """Convicted, or silent: a rank cannot be started there either way."""
    return health.health is Health.CRITICAL or health.report.outcome is not Outcome.ANSWERED
