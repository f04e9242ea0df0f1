"""What ends with a job's ranks, asked for while they live: stacks and flight recorders."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

from brctl.engine.controller.wiring import Controller
from brctl.engine.job.flight_collect import write_dumps
from brctl.engine.job.stacks import Captured, capture_arriving
from brctl.engine.live_queries.ras import facts_of
from brctl.engine.live_queries.workers import ask_workers, recorded_in
from brctl.model.jobs.job import Job
from brctl.model.jobs.rank_dumps import RankDumps


async def dump_ranks(
    controller: Controller,
    job: Job,
    folder: Path,
    nodes: Sequence[str],
    within_s: float | None,
) -> RankDumps:
    """Stacks into `folder/round-1`, recorders into `folder/flight-recorder`.

    Who does not answer in time is told: a run that stops the job cannot wait for a node that hangs.
    """
    captured: list[Captured] = []
    recorded: dict[int, bytes] = {}
    late = False
    try:
        async with asyncio.timeout(within_s):
            async with aclosing(capture_arriving(controller, job, folder, nodes)) as stacks:
                async for found in stacks:
                    captured += found
            recorded = recorded_in(await ask_workers(controller, job, facts_of(captured)))
    except TimeoutError:
        late = True
    write_dumps(recorded, folder / "flight-recorder")
    asked = [rank for node in nodes or job.nodes for rank in job.ranks_on(node)]
    why = {one.rank: one.note or "no stack" for one in captured if not one.threads}
    seen = {one.rank for one in captured}
    why |= {rank: f"no answer within {within_s:g} s" for rank in asked if rank not in seen}
    return RankDumps(tuple(asked), why, tuple(sorted(recorded)), late)
