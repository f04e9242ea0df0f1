"""job.replace_nodes: put standbys into the places of suspects, rank by rank."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import (
    ActionFailed,
    ActionResult,
    NothingDone,
    Observation,
    VerbImplementation,
)
from brctl.model.jobs.job import Job
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments


class JobReplaceNodes(VerbImplementation):
    """See the head of this file."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        job, swaps = await self._read(context, args)
        moved = not set(swaps) & set(job.nodes) and set(swaps.values()) <= set(job.nodes)
        reservations = await context.backend.reservations()
        held = [n for n, r in reservations.items() if r.owner == context.owner_mark]
        done = moved and not set(held) & set(swaps.values())
        return Observation(done, {"nodes": list(job.nodes)}, _say(swaps))

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        job = await context.jobs.get(arguments.text(args, "job"))
        leaving = arguments.nodes(args, "out")
        coming: Sequence[str] = (
            arguments.nodes(args, "in")
            if arguments.is_known(args, "in")
            else [arguments.UNKNOWN_TEXT] * len(leaving)
        )
        return tuple(
            Change(Sign.ALTER, f"job {job.name} {_ranks(job, out)}", f"{out} -> {new}")
            for out, new in zip(leaving, coming, strict=False)
        )

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        job, swaps = await self._read(context, args)
        absent = [n for n in swaps if n not in job.nodes and swaps[n] not in job.nodes]
        if absent:
            raise NothingDone(f"{absent[0]} is not in job {job.name}; somebody moved it")
        await _refuse_taken(context, job, [new for new in swaps.values() if new not in job.nodes])
        after = await context.backend.replace_nodes(job, swaps)
        # In the job it is no standby any more, so nothing is left to reserve.
        await context.backend.release(list(swaps.values()), context.owner_mark)
        return ActionResult({"nodes": list(after.nodes)}, changed=after != job, say=_say(swaps))

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        job, swaps = await self._read(context, args)
        back = {new: old for old, new in swaps.items() if new in job.nodes}
        after = await context.backend.replace_nodes(job, back)
        for standby in filter(lambda node: _note_of(context, node).exists(), back):
            # Ours again, so that nobody takes it before the run goes forward or gives it back.
            await context.backend.reserve(standby, context.owner_mark, context.clock.now())
        return ActionResult({"nodes": list(after.nodes)}, changed=bool(back), say=_say(back))

    async def _read(self, context: RunContext, args: Arguments) -> tuple[Job, Mapping[str, str]]:
        leaving, coming = arguments.nodes(args, "out"), arguments.nodes(args, "in")
        if len(leaving) != len(coming):
            raise ActionFailed(f"{len(leaving)} nodes out but {len(coming)} in")
        swaps = dict(zip(leaving, coming, strict=True))
        return await context.jobs.get(arguments.text(args, "job")), swaps


async def _refuse_taken(context: RunContext, job: Job, coming: Sequence[str]) -> None:
    """Nobody else may have taken what comes in; notes what was put aside for this run."""
    reservations = await context.backend.reservations()
    carried = {n: other.name for other in await context.jobs.all() if other.name != job.name
               for n in other.nodes}  # fmt: skip
    for node in coming:
        owner = reservations[node].owner if node in reservations else ""
        if owner not in ("", context.owner_mark):
            raise NothingDone(f"{node} is reserved by {owner}")
        if node in carried:
            raise NothingDone(f"{node} carries job {carried[node]}")
        if owner:
            _note_of(context, node).touch()


def was_reserved(context: RunContext, node: str) -> bool:
    """Whether this run put a standby into the job that it had reserved."""
    return _note_of(context, node).exists()


def _note_of(context: RunContext, node: str) -> Path:
    """Says that a node was reserved by this run before it went into the job."""
    return context.run.folder / f"reserved-before-{node}"


def _say(swaps: Mapping[str, str]) -> str:
    return ", ".join(f"{old} -> {new}" for old, new in swaps.items())


def _ranks(job: Job, node: str) -> str:
    ranks = job.ranks_on(node)
    if not ranks:
        return f"without {node}"
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]}-{ranks[-1]}"
