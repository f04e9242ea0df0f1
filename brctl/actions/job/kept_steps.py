"""Ask a job's nodes which steps they keep in memory."""

import asyncio
from collections.abc import Collection, Mapping

from brctl.actions.context import Sweeps
from brctl.evidence.job.kept_steps import CHECK, KeptStep, KeptSteps, read_kept_steps
from brctl.model.jobs.job import Job
from brctl.model.sweeps.report import NodeReport

AT_ONCE = 64


async def ask_kept_steps(
    sweeps: Sweeps, job: Job, *, without: Collection[str] = (), verify: bool = False
) -> KeptSteps:
    """What the nodes of a job keep; with `verify` what is damaged is left out."""
    return await _ask(sweeps, job, without, {"verify": verify})


async def newest_sound(
    sweeps: Sweeps, job: Job, *, without: Collection[str] = ()
) -> tuple[KeptStep | None, KeptSteps]:
    """The newest step that every rank has undamaged on a node but these, and all that was found.

    Only that step is read; one that turns out damaged leaves the one before it.
    """
    kept = await _ask(sweeps, job, without, {})
    newest = kept.newest(without)
    if newest is None:
        return None, kept
    # By attempt first: an attempt that was thrown away may have come further.
    candidates = sorted({s.kept for s in kept.slots if s.kept <= newest}, reverse=True)[:2]
    steps = [candidate.step for candidate in candidates]
    sound = await _ask(sweeps, job, without, {"verify": True, "steps": steps})
    return sound.newest(without), sound


async def _ask(
    sweeps: Sweeps, job: Job, without: Collection[str], parameters: Mapping[str, object]
) -> KeptSteps:
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask(node: str) -> NodeReport:
        async with gate:
            return await sweeps.ask(node, CHECK, job, parameters)

    nodes = [node for node in job.nodes if node not in without]
    return read_kept_steps(job, await asyncio.gather(*map(ask, nodes)))
